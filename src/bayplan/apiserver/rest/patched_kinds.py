"""The apiVersion and kind of patched objects, which a patch may change."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.apiserver.codec.decode_error import go_kind
from bayplan.apiserver.model.errors import internal_error
from bayplan.apiserver.rest.body_types import Target, wrong_custom_type
from bayplan.base.plain_data import Document, part


def type_problem(value: Document) -> str:
    """Return the error about an apiVersion or kind that is no string, or ""."""
    for name in ("apiVersion", "kind"):
        found = value.get(name)
        if found is not None and not isinstance(found, str):
            problem = f"json: cannot unmarshal {go_kind(found)} into Go struct field .{name} of type string"
            return f"couldn't get version/kind; json parse error: {problem}"
    return ""


def custom_kind_problem(value: Document, quoted: Callable[[], str]) -> str:
    """Return the error about an unreadable apiVersion or kind of a custom resource, or "".

    Args:
        value: the patched object.
        quoted: returns the patched object as errors quote it.
    """
    problem = type_problem(value)
    if not problem and str(value.get("apiVersion") or "").count("/") > 1:
        problem = f"unexpected GroupVersion string: {value['apiVersion']}"
    if not problem and not value.get("kind"):
        problem = f"Object 'Kind' is missing in '{quoted()}'"
    return problem


def with_custom_kind(target: Target, value: Document, old: Document, subresource: str) -> Document:
    """Return a patched custom resource with the expected apiVersion and kind; the status endpoint ignores changes of both.

    Raises:
        ApiError: the patch removes the apiVersion, or changes apiVersion or kind.
    """
    if not value.get("apiVersion"):
        raise internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    if subresource == "status":
        return {**value, "apiVersion": target.api_version, "kind": target.kind}
    if (value["apiVersion"], value["kind"]) != (target.api_version, target.kind):
        raise wrong_custom_type(target, value, str(part(old, "metadata").get("name") or ""))
    return value
