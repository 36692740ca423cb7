"""The type that a request body must have, and checks that a body has it."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.apiserver.model.errors import ApiError, Cause, bad_request, invalid
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.schema.facts import api_facts, internal_package
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote

_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


class Target(NamedTuple):
    """The expected type of a body.

    Attributes:
        api_version, kind: the expected apiVersion and kind.
        type_name: the name of the type in the OpenAPI document; empty for custom resources.
        resource: the resource, whose schema is needed for custom resources; None if the type is not that of a resource.
        older: an older apiVersion with the same fields that is also accepted; empty if there is none.
    """

    api_version: str
    kind: str
    type_name: str
    resource: Resource | None = None
    older: str = ""

    @property
    def version(self) -> str:
        """The version without the group, such as "v1"."""
        return self.api_version.rpartition("/")[2]


def target_of(resource: Resource, subresource: str = "") -> Target:
    """Return the type that the body of a write must have: the type of the resource, or of its subresource."""
    facts = resource.subresources.get(subresource)
    if facts is None or facts.kind == resource.kind:
        return Target(resource.api_version, resource.kind, _go_type(resource.api_version, resource.kind), resource)
    version = f"{facts.group}/{facts.version}" if facts.group else facts.version or resource.api_version
    return Target(version, facts.kind, _go_type(version, facts.kind), None)


def _go_type(api_version: str, kind: str) -> str:
    return api_facts().kinds.get(f"{api_version}/{kind}", "")


def of_version(target: Target, api_version: str) -> Target:
    """Return a target in the version in which an object was sent, if that version differs and has the kind."""
    if api_version in ("", target.api_version, target.older) or not target.type_name:
        return target
    type_name = _go_type(api_version, target.kind)
    return target._replace(api_version=api_version, type_name=type_name) if type_name else target


def check_kind(target: Target, api_version: object, kind: object) -> None:
    """Raise if an object cannot be converted to the expected kind. An absent value means the expected one.

    Raises:
        ApiError: kind or version differ.
    """
    problem = kind_problem(target, api_version, kind)
    if problem:
        version = str(api_version or target.api_version).rpartition("/")[2]
        raise bad_request(
            f'{kind or target.kind} in version "{version}" cannot be handled as a {target.kind}: {problem}'
        )


def check_version(target: Target, api_version: str) -> None:
    """Raise if an object that could be decoded has another version of the expected kind.

    Raises:
        ApiError: the version differs.
    """
    if api_version not in ("", target.api_version, target.older):
        raise wrong_version(target, api_version)


def wrong_version(target: Target, found: str) -> ApiError:
    """Return the error for an object of another version than the expected one."""
    return bad_request(
        f"the API version in the data ({found}) does not match the expected API version ({target.api_version})"
    )


def wrong_custom_type(target: Target, value: Document, name: str) -> ApiError:
    """Return the error for a custom resource of another kind or version."""
    kind, version = str(value.get("kind") or ""), str(value.get("apiVersion") or "")
    causes = [
        Cause("FieldValueInvalid", f"Invalid value: {quote(found)}: must be {wanted}", field)
        for field, found, wanted in (("kind", kind, target.kind), ("apiVersion", version, target.api_version))
        if found != wanted
    ]
    return invalid(kind, version.partition("/")[0], name, causes)


_SEPARATE_SCHEMES = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups that other servers inside kube-apiserver serve. They know no kinds of other groups but `_COMMON_KINDS`."""

_COMMON_KINDS = frozenset(
    (
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "Status",
        "UpdateOptions",
        "WatchEvent",
    )
)
"""Kinds that every group version has."""

_UNVERSIONED_KINDS = frozenset(("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"))
"""Kinds that upstream finds in every version, also in unknown ones."""


def kind_problem(target: Target, api_version: object, kind: object) -> str:
    """Return upstream's message if kind or version differ from the expected ones, else "".

    An absent value means the expected one.
    """
    if not kind and not api_version:
        return ""
    found_kind, found_version = str(kind or target.kind), str(api_version or target.api_version)
    if found_kind == target.kind and found_version in (target.api_version, target.older):
        return ""
    group = target.api_version.partition("/")[0] if "/" in target.api_version else ""
    is_known = f"{found_version}/{found_kind}" in api_facts().kinds or found_kind in _UNVERSIONED_KINDS
    if group in _SEPARATE_SCHEMES:
        is_known = is_known and found_kind in _COMMON_KINDS | _UNVERSIONED_KINDS
        is_known = is_known or (found_version, found_kind) == (f"{group}/v1beta1", target.kind)
    if is_known and found_kind == target.kind:
        return ""  # `check_version` refuses it once it is decoded.
    if is_known:
        package, version = internal_package(group, target.kind), found_version.rpartition("/")[2]
        if found_kind in _COMMON_KINDS | _UNVERSIONED_KINDS:
            version = "v1"
        return f"converting ({version}.{found_kind}) to ({package}.{target.kind}): unknown conversion"
    return f'no kind "{found_kind}" is registered for version "{found_version}" {_SCHEME}'
