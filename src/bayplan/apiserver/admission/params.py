"""Bindings and parameters of admission policies.

Source: k8s.io/apiserver v0.36.3, pkg/admission/plugin/policy/generic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bayplan.apiserver.admission.attributes import Attributes, Match, ObjectLister
from bayplan.apiserver.admission.matching import match_criteria
from bayplan.apiserver.kinds.conversion import from_storage
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.resources import Resource
from bayplan.base.plain_data import Document, part
from bayplan.objects.selectors import compile_selector_document


class _ConfigurationProblem(Exception):
    """A policy or binding cannot be evaluated for a request, because of its configuration."""


def name_of(document: Document) -> str:
    """Return the name of an object."""
    return str(part(document, "metadata").get("name") or "")


def bound_policies(lister: ObjectLister, policies: str, bindings: str) -> list[tuple[Document, list[Document]]]:
    """Return the policies in a table that have bindings in another table, sorted by name, each with its sorted bindings."""
    found: dict[str, list[Document]] = {}
    for binding in lister.all(bindings):
        found.setdefault(str(part(binding, "spec").get("policyName") or ""), []).append(binding)
    return [(policy, found[name_of(policy)]) for policy in lister.all(policies) if name_of(policy) in found]


class ApplicableBinding(NamedTuple):
    """A binding of a policy that applies to a request.

    Attributes:
        binding: the binding.
        match: the resource and kind under which the request matches the policy.
        params: the parameter objects; [None] if there are no parameters.
    """

    binding: Document
    match: Match
    params: list[Document | None]


class Misconfigured(NamedTuple):
    """A policy or binding that cannot be evaluated for a request: the binding, or None for the policy, and the reason."""

    binding: Document | None
    message: str


def applying_bindings(
    policy: Document, bindings: list[Document], attributes: Attributes
) -> Iterator[ApplicableBinding | Misconfigured]:
    """Yield the bindings of a policy that apply to a request; none if the request does not match the policy."""
    try:
        match = _match_policy(policy, attributes)
        if match is None:
            return
        resource = _param_resource(policy, attributes.lister)
    except _ConfigurationProblem as problem:
        yield Misconfigured(None, f"failed to configure policy: {problem}")
        return
    for binding in bindings:
        try:
            if not _match_binding(binding, attributes):
                continue
            reference = part(binding, "spec").get("paramRef")
            params = _collect_params(attributes.lister, resource, reference, attributes.namespace)
        except _ConfigurationProblem as problem:
            yield Misconfigured(binding, f"failed to configure binding: {problem}")
        else:
            yield ApplicableBinding(binding, match, params)


def _match_policy(policy: Document, attributes: Attributes) -> Match | None:
    """Return the resource and kind under which a request matches a policy, or None if it does not match.

    Raises:
        _ConfigurationProblem: the namespace of the request does not exist.
    """
    try:
        return match_criteria(part(policy, "spec", "matchConstraints"), attributes)
    except ApiError as problem:
        raise _ConfigurationProblem(problem.message) from None


def _match_binding(binding: Document, attributes: Attributes) -> bool:
    """Return whether a binding applies to a request.

    Raises:
        _ConfigurationProblem: the namespace of the request does not exist.
    """
    criteria = part(binding, "spec").get("matchResources")
    if not isinstance(criteria, dict):
        return True
    try:
        return match_criteria(criteria, attributes) is not None
    except ApiError as problem:
        raise _ConfigurationProblem(problem.message) from None


def _param_resource(policy: Document, lister: ObjectLister) -> Resource | None:
    """Return the resource of a policy's parameters, or None if the policy has no parameters.

    Raises:
        _ConfigurationProblem: the kind of the parameters is not served.
    """
    kind = part(policy, "spec").get("paramKind")
    if not isinstance(kind, dict):
        return None
    api_version, name = str(kind.get("apiVersion") or ""), str(kind.get("kind") or "")
    found = lister.registry.by_kind(api_version, name)
    if found is None:
        group, _, version = api_version.rpartition("/")
        raise _ConfigurationProblem(
            f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'"
        )
    return found


def _collect_params(
    lister: ObjectLister, resource: Resource | None, reference: object, namespace: str
) -> list[Document | None]:
    """Return the parameter objects that a binding selects; [None] if it has no parameters.

    Args:
        lister: the stored objects.
        resource: the resource of the parameters; None if the policy has no parameters.
        reference: the ``paramRef`` of the binding.
        namespace: the namespace of the request.

    Raises:
        _ConfigurationProblem: the reference does not fit the resource; or no object is found, and the binding's
            `parameterNotFoundAction` is ``Deny``.
    """
    if resource is None or not isinstance(reference, dict):
        return [None]
    own = str(reference.get("namespace") or "")
    if resource.namespaced and not own and not namespace:
        raise _ConfigurationProblem(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    if own and not resource.namespaced:
        raise _ConfigurationProblem("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    where = (own or namespace) if resource.namespaced else ""
    found = list(_found(lister, resource, where, reference))
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise _ConfigurationProblem("no params found for policy binding with `Deny` parameterNotFoundAction")
    return list(found)


def _found(lister: ObjectLister, resource: Resource, namespace: str, reference: Document) -> Iterator[Document]:
    name, selector = reference.get("name"), reference.get("selector")
    if name:
        one = lister.find(resource.table, namespace, str(name))
        if one is not None:
            yield _shown(resource, one)
    elif isinstance(selector, dict):
        for each in lister.all(resource.table):
            metadata = part(each, "metadata")
            labels = {key: str(value) for key, value in part(metadata, "labels").items()}
            if str(metadata.get("namespace") or "") == namespace and compile_selector_document(selector).matches(
                labels
            ):
                yield _shown(resource, each)


def _shown(resource: Resource, stored: Document) -> Document:
    return {"apiVersion": resource.api_version, "kind": resource.kind} | from_storage(resource, stored)
