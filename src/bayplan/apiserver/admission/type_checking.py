"""Type checks of ValidatingAdmissionPolicies against the kinds that they match: warnings for the status of a policy.

Expressions are untyped when they run, so a misspelt field would not be noticed until a matching object is written. The
controller ``validatingadmissionpolicy-status`` therefore also compiles them with the types of the matched kinds.

Source: k8s.io/apiserver v0.36.3, pkg/admission/plugin/policy/validating/typechecking.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bayplan.apiserver.model.expressions import Scope, environment
from bayplan.apiserver.model.resources import Resource, ResourceRegistry
from bayplan.apiserver.validation.schema_types import SchemaType, schema_type
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.base.recursion_limit import RECURSION_LIMIT
from bayplan.cel.checker import Checker
from bayplan.cel.parser import Parser
from bayplan.cel.problems import CompileProblem
from bayplan.cel.source import Source
from bayplan.cel.types import DYN, CelType
from bayplan.formats.schema import FieldFacts, schema

MAX_KINDS = 10
"""Maximum number of kinds against which one rule of a policy is checked."""
_MAX_DEPTH = 20
_TEXTS = ("Time", "MicroTime")


class _Kind(NamedTuple):
    name: str
    type: SchemaType


def expression_warnings(policy: Document, registry: ResourceRegistry) -> list[Document]:
    """Return the warnings for the status of a policy (``status.typeChecking.expressionWarnings``).

    Args:
        policy: the policy.
        registry: the served resources.
    """
    spec = part(policy, "spec")
    kinds = list(_matched(spec, registry))
    found: list[Document] = []
    for index, validation in enumerate(parts(spec, "validations")):
        for name in ("expression", "messageExpression"):
            text = str(validation.get(name) or "")
            problems = [_problem(text, kind, spec) for kind in kinds] if text else []
            shown = "\n".join(problem for problem in problems if problem)
            if shown:
                found.append({"fieldRef": f"spec.validations[{index}].{name}", "warning": shown})
    return found


def _matched(spec: Document, registry: ResourceRegistry) -> Iterator[_Kind]:
    """Yield the kinds that a policy names, sorted by group, version and kind. Rules with wildcards name none."""
    found: dict[tuple[str, str, str], Resource] = {}
    for rule in parts(part(spec, "matchConstraints"), "resourceRules"):
        groups, versions = texts(rule, "apiGroups"), texts(rule, "apiVersions")
        if any("*" in each for each in (*groups, *versions)):
            continue
        names = [each for each in texts(rule, "resources") if "*" not in each and "/" not in each]
        known = [
            resource
            for group in sorted(groups)
            for version in sorted(versions)
            for name in sorted(names)
            if (resource := registry.find(group, version, name)) is not None
        ]
        for resource in known[:MAX_KINDS]:
            found[resource.group, resource.version, resource.kind] = resource
    for (group, version, kind), resource in sorted(found.items(), key=lambda each: each[0]):
        made = kind_type(resource)
        if made is not None:
            yield _Kind(f"{group}/{version}, Kind={kind}", made)


def kind_type(resource: Resource) -> SchemaType | None:
    """Return the type of a kind's objects, or None if the schema is unknown."""
    if resource.custom is not None:
        found = part(resource.custom, "schema", "openAPIV3Schema")
    elif resource.type_name in schema().types:
        found = _schema_of(resource.type_name, 0)
    else:
        return None
    return schema_type(found, f"{resource.kind}0", is_object=True)


def _schema_of(name: str, depth: int) -> Document:
    facts = schema().types[name]
    if not facts.fields:
        if facts.format == "int-or-string":
            return {"x-kubernetes-int-or-string": True}
        if facts.scalar == "string":
            return {"type": "string", "format": "date-time"} if name.endswith(_TEXTS) else {"type": "string"}
        return {"type": facts.scalar} if facts.scalar != "any" else {}
    if depth > _MAX_DEPTH:
        return {}
    properties = {field: _field(each, depth + 1) for field, each in facts.fields.items()}
    return {"type": "object", "properties": properties}


def _field(facts: FieldFacts, depth: int) -> Document:
    made: Document
    if facts.type in schema().types:
        made = _schema_of(facts.type, depth)
    else:
        made = {} if facts.type == "any" else {"type": facts.type, "format": facts.format}
    for container in reversed(facts.containers):
        made = (
            {"type": "array", "items": made}
            if container == "list"
            else {"type": "object", "additionalProperties": made}
        )
    return made


def _problem(text: str, kind: _Kind, spec: Document) -> str:
    """Return the type errors of an expression for objects of a kind, or an empty string."""
    scope = Scope(params=spec.get("paramKind") is not None, variables=())
    names, objects = environment(scope)
    names |= {"object": kind.type.type, "oldObject": kind.type.type}
    objects |= kind.type.objects()
    variables = dict[str, CelType]()
    objects[names["variables"].name] = variables
    for variable in parts(spec, "variables"):
        variables[str(variable.get("name") or "")] = _type_of(str(variable.get("expression") or ""), names, objects)
    try:
        _check(text, names, objects)
    except CompileProblem as problem:
        return f"{kind.name}: {str(problem).removeprefix('compilation failed: ')}\n"
    return ""


_Objects = Mapping[str, Mapping[str, CelType]]


def _type_of(text: str, names: Mapping[str, CelType], objects: _Objects) -> CelType:
    try:
        return _check(text, names, objects)
    except CompileProblem:
        return DYN


def _check(text: str, names: Mapping[str, CelType], objects: _Objects) -> CelType:
    with RECURSION_LIMIT.raised():
        return Checker(Source(text), names, objects).check(Parser(text, binds=False).parse())
