"""MutatingAdmissionPolicies: change objects by apply configurations and JSON patches that CEL expressions compute.

Sources: k8s.io/apiserver v0.36.3, pkg/admission/plugin/policy/mutating; KEP-3962.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from bayplan.apiserver.admission.attributes import Attributes, Match, ObjectLister
from bayplan.apiserver.admission.conditions import MatchProblem
from bayplan.apiserver.admission.params import Misconfigured, applying_bindings, bound_policies, name_of
from bayplan.apiserver.admission.policies import BoundPolicy, compile_common
from bayplan.apiserver.admission.reinvocation import Reinvocation
from bayplan.apiserver.admission.requests import admission_values
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.fields.field_declarations import configuration_problem
from bayplan.apiserver.fields.field_type import FieldType, Merge, field_type
from bayplan.apiserver.fields.merging import merge
from bayplan.apiserver.model.errors import ApiError, internal_error
from bayplan.apiserver.model.expressions import (
    JSON_PATCH,
    OBJECT,
    Budget,
    Evaluation,
    Expression,
    OutOfBudgetError,
    cel_value,
    compile_expression,
    plain_value,
)
from bayplan.apiserver.patches.json_patch import JsonPatchError, PatchTestError, patch_object
from bayplan.apiserver.schema.facts import api_facts
from bayplan.base.plain_data import Document, part, parts
from bayplan.cel.problems import RunProblem
from bayplan.cel.records import Message
from bayplan.cel.types import list_of
from bayplan.cel.values import CelMap
from bayplan.objects.selectors import quote

POLICIES = "admissionregistration.k8s.io/mutatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/mutatingadmissionpolicybindings"


class Mutation(NamedTuple):
    """One mutation of a policy.

    Attributes:
        is_patch: whether the expression returns a JSON patch; otherwise it returns an apply configuration.
        expression: the compiled expression.
    """

    is_patch: bool
    expression: Expression


@dataclass(frozen=True, eq=False)
class Policy(BoundPolicy):
    """A compiled MutatingAdmissionPolicy.

    Attributes:
        mutations: the mutations, in order.
    """

    mutations: tuple[Mutation, ...]

    @property
    def is_reinvoked(self) -> bool:
        """Whether the policy is called again if other hooks change the object after it."""
        return part(self.document, "spec").get("reinvocationPolicy") == "IfNeeded"


class Invocation(NamedTuple):
    """A policy to evaluate for a request, with one binding and one parameter.

    Attributes:
        policy: the policy.
        binding: the binding.
        match: the resource and kind under which the request matches.
        param: the parameter object; None if the policy has no parameters.
    """

    policy: Policy
    binding: Document
    match: Match
    param: Document | None

    @property
    def key(self) -> tuple[str, ...]:
        """The names of policy, binding and parameter, which identify an invocation within one request."""
        metadata = part(self.param or {}, "metadata")
        names = (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        return (self.policy.name, name_of(self.binding), *names)


class _Failure(NamedTuple):
    policy: Policy
    binding: Document | None
    message: str
    reason: str = ""

    def __str__(self) -> str:
        if self.binding is not None:
            return f"policy '{self.policy.name}' with binding '{name_of(self.binding)}' denied request: {self.message}"
        return f"policy {quote(self.policy.name)} denied request: {self.message}"


_UNTYPED = "error applying patch: failed to convert patch object to typed object"


class MutationProblem(Exception):
    """A mutation cannot be applied."""


def compiled_policies(lister: ObjectLister) -> list[Policy]:
    """Return the policies that have bindings, sorted by name."""
    return [compile_policy(policy, bindings) for policy, bindings in bound_policies(lister, POLICIES, BINDINGS)]


def compile_policy(policy: Document, bindings: list[Document]) -> Policy:
    """Return a compiled policy. If an expression does not compile, its evaluation reports the error."""
    spec = part(policy, "spec")
    conditions, variables, scope = compile_common(policy)
    patching = scope._replace(patches=True)
    mutations = []
    for each in parts(spec, "mutations"):
        is_patch = each.get("patchType") == "JSONPatch"
        text = str(part(each, "jsonPatch" if is_patch else "applyConfiguration").get("expression") or "")
        wanted = (list_of(JSON_PATCH),) if is_patch else (OBJECT,)
        mutations.append(Mutation(is_patch, compile_expression(text, patching, wanted)))
    return Policy(policy, bindings, conditions, variables, tuple(mutations))


# --- a request --------------------------------------------------------------------------------------------------------


def mutate(policies: list[Policy], attributes: Attributes, again: Reinvocation) -> bool:
    """Apply all matching policies to the object of a request, and return whether any mutation was applied.

    Raises:
        ApiError: a policy fails, and its failure policy is Fail.
    """
    failures: list[_Failure] = []
    invocations = [each for policy in policies for each in _invocations(policy, attributes, failures)]
    patched = False
    for invocation in invocations:
        patched |= _invoke(invocation, attributes, again, failures)
    if patched:
        again.require()
    refusing = [each for each in failures if each.policy.fails]
    if refusing:
        raise _refusal(refusing, attributes)
    return patched


def _invocations(policy: Policy, attributes: Attributes, failures: list[_Failure]) -> Iterator[Invocation]:
    for each in applying_bindings(policy.document, policy.bindings, attributes):
        if isinstance(each, Misconfigured):
            failures.append(_Failure(policy, each.binding, each.message))
        else:
            for param in each.params:
                yield Invocation(policy, each.binding, each.match, param)


def _invoke(invocation: Invocation, attributes: Attributes, again: Reinvocation, failures: list[_Failure]) -> bool:
    """Apply the mutations of one policy, and return whether at least one mutation was applied."""
    policy = invocation.policy
    try:
        if not policy.conditions.are_met({**_values(invocation, attributes), "namespaceObject": None}):
            return False
    except MatchProblem as problem:
        failures.append(_Failure(policy, invocation.binding, str(problem), "Invalid"))
        return False
    if not again.is_due(invocation.key):
        return False
    before, patched = attributes.object, False
    for mutation in policy.mutations:
        if attributes.object is None:
            break
        try:
            _apply_mutation(mutation, invocation, attributes)
            patched = True
        except (MutationProblem, RunProblem, OutOfBudgetError) as problem:
            failures.append(_Failure(policy, invocation.binding, str(problem), "Invalid"))
    if attributes.object != before:
        again.require()
    if policy.is_reinvoked:
        again.note(invocation.key)
    return patched


def _values(invocation: Invocation, attributes: Attributes) -> Mapping[str, object]:
    return {**admission_values(attributes, invocation.match), "params": cel_value(invocation.param)}


def _apply_mutation(mutation: Mutation, invocation: Invocation, attributes: Attributes) -> None:
    if mutation.expression.code is None:
        raise MutationProblem(mutation.expression.problem)
    evaluation = Evaluation(_values(invocation, attributes), invocation.policy.variables)
    value = evaluation.run(mutation.expression, Budget())
    match = invocation.match
    current, _ = attributes.versions(match)
    assert current is not None
    new = _json_patched(current, value) if mutation.is_patch else _applied(match, current, value)
    if new != current:
        attributes.replace_object(match, new)
    if mutation.is_patch:
        _check_fields(match, new)


# --- JSON patches -----------------------------------------------------------------------------------------------------


def _json_patched(current: Document, value: object) -> Document:
    operations = [_operation(each) for each in value] if isinstance(value, list) else []
    try:
        return patch_object(current, operations)
    except PatchTestError:
        return current
    except JsonPatchError as problem:
        raise MutationProblem(f"JSON Patch: {problem}") from None


def _check_fields(match: Match, document: Document) -> None:
    """Refuse a JSON patch that adds unknown fields. Custom resources are not checked.

    Raises:
        ApiError: an unknown field; as upstream's strict decoding, whatever the failure policy.
    """
    type_name = api_facts().kinds.get("/".join(filter(None, match.kind)))
    unknown = shape_of(type_name).unknown_fields(document) if type_name is not None else []
    if unknown:
        text = ", ".join(f'unknown field "{each}"' for each in unknown)
        raise internal_error(f"strict decoding error: {text}")


def _operation(value: object) -> Document:
    if not isinstance(value, Message):
        raise MutationProblem("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
    operation: Document = {"op": str(value.fields.get("op", "")), "path": str(value.fields.get("path", ""))}
    if value.fields.get("from"):
        operation["from"] = str(value.fields["from"])
    if "value" in value.fields:
        _check_type_names(value.fields["value"])
        try:
            operation["value"] = plain_value(value.fields["value"])
        except RunProblem as problem:
            text = f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {problem}"
            raise MutationProblem(text) from None
    return operation


def _check_type_names(value: object) -> None:
    """Check that the type name of each object in a value is that of the value itself and the path of its field.

    Raises:
        MutationProblem: a type name does not match.
    """
    if not isinstance(value, Message):
        return
    problems = list(_type_problems(value, value.type_name))
    if problems:
        raise MutationProblem("type mismatch: " + "\n".join(problems))


def _type_problems(value: object, path: str) -> Iterator[str]:
    if isinstance(value, Message):
        if value.type_name != path:
            shown = f"unexpected type name {quote(value.type_name)}, expected {quote(path)}"
            yield f"{shown}, which matches field name path from root Object type"
        for name, item in value.fields.items():
            yield from _type_problems(item, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _type_problems(item, path)
    elif isinstance(value, CelMap):
        for _, item in value.entries.values():
            yield from _type_problems(item, path)


# --- applied configurations -------------------------------------------------------------------------------------------


def _applied(match: Match, current: Document, value: object) -> Document:
    """Return an object with an applied configuration.

    Raises:
        MutationProblem: the configuration does not fit the kind of the object, or changes an atomic value.
    """
    _check_type_names(value)
    config = cast("Document", plain_value(value))
    config |= {name: current[name] for name in ("apiVersion", "kind") if name in current}
    kind = _merge_type(match)
    problem = configuration_problem("", kind, config)
    if problem:
        raise MutationProblem(f"{_UNTYPED}: {problem}")
    atomics = list(_atomics(kind, config, ""))
    if atomics:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise MutationProblem(f"error applying patch: invalid ApplyConfiguration: {text}")
    return cast("Document", merge(kind, current, config))


def _merge_type(match: Match) -> FieldType:
    """Return the merge type of the object of a request, which can have the kind of a subresource.

    Raises:
        MutationProblem: the kind is in another version than the resource; upstream does not find its type then.
    """
    resource, (group, version, kind) = match.resource, match.kind
    if (group, version) != (resource.group, resource.version):
        raise MutationProblem(f"{_UNTYPED}: no corresponding type for {group}/{version}, Kind={kind}")
    if kind == resource.kind:
        return resource.fields
    return field_type(api_facts().kinds[f"{resource.api_version}/{kind}"])


def _atomics(kind: FieldType, value: object, path: str) -> Iterator[str]:
    """Yield the paths of the atomic lists and maps that a configuration sets, which policies must not mutate."""
    if isinstance(value, dict):
        if kind.merge is Merge.LEAF:
            yield path
        for name, item in value.items():
            if kind.merge is not Merge.LEAF:
                yield from _atomics(kind.child(name), item, f"{path}.{name}")
    elif isinstance(value, list):
        if kind.merge in (Merge.LEAF, Merge.UNTYPED):
            yield path
        for index, item in enumerate(value):
            yield from _atomics(kind.item, item, f"{path}[{index}]")


def _refusal(failures: list[_Failure], attributes: Attributes) -> ApiError:
    error = attributes.forbidden("admission request denied by policy")
    causes = [{"message": str(each)} for each in failures]
    details: Document = {**(error.details or {}), "causes": causes}
    return ApiError(error.code, str(failures[0]), reason=failures[0].reason or error.reason, details=details)
