"""Parsing of request paths: find the resource that a path names, and the verb."""

from __future__ import annotations

from bayplan.apiserver.model.errors import (
    ApiError,
    bad_request,
    method_not_allowed,
    no_such_path,
    not_found,
    object_details,
)
from bayplan.apiserver.model.requests import RequestInfo
from bayplan.apiserver.model.resources import Resource, ResourceRegistry
from bayplan.apiserver.rest.messages import Request
from bayplan.apiserver.rest.options import read_bool
from bayplan.objects.selectors import quote

_VERBS = {
    ("GET", True): "get", ("PUT", True): "update", ("PATCH", True): "patch", ("DELETE", True): "delete",
    ("POST", False): "create", ("GET", False): "list", ("DELETE", False): "deletecollection",
}  # fmt: skip
_CUSTOM_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


OF_RUNNING_PODS = frozenset(("log", "exec", "attach", "portforward", "proxy"))
"""Subresources that only a kubelet, or a pod itself, can answer."""

_NAMED = frozenset(("get", "update", "patch", "delete"))


def split_path(path: str) -> tuple[str, str, list[str]] | None:
    """Return the group, version and remaining segments of a path, or None if the path is not below a group version."""
    if path.startswith("//"):
        return None
    segments = path.strip("/").split("/")
    if segments[:2] == ["api", "v1"]:
        return "", "v1", segments[2:]
    if segments[0] == "apis" and len(segments) >= 3 and segments[1]:
        return segments[1], segments[2], segments[3:]
    return None


def resolve(registry: ResourceRegistry, request: Request, group: str, version: str, rest: list[str]) -> RequestInfo:
    """Return the resource, names and verb of a request.

    Args:
        registry: the served resources.
        request: the request, for its method and query.
        group: the group in the path.
        version: the version in the path.
        rest: the segments of the path after the version.

    Raises:
        ApiError: the resource does not exist, or does not support the verb.
    """
    watched = rest[:1] == ["watch"]
    if watched:
        rest = rest[1:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if rest[2:3] == ["proxy"]:
        # The remaining segments are the path that the pod or service receives.
        rest = rest[:3]
    if len(rest) > 3 and registry.is_custom(group):
        rest = rest[:3]  # Upstream has no routes for custom resources, and ignores further segments.
    is_nameless = len(rest) == 3 and rest[1] == "" and "" not in (rest[0], rest[2])
    if not rest or len(rest) > 3 or ("" in rest and not is_nameless):
        raise no_such_path()
    resource = registry.find(group, version, rest[0])
    if resource is None or (namespace and not resource.namespaced):
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if watched and (subresource or "watch" not in resource.facts.verbs):
        raise no_such_path()
    if subresource and subresource not in resource.subresources:
        if resource.custom is not None:
            raise _deprecated(resource, not_found(resource.name, resource.group, name))
        raise no_such_path()
    if name and not subresource and not _NAMED & set(resource.facts.verbs):
        raise no_such_path()
    if resource.namespaced and not namespace and (name or "list" not in resource.facts.verbs):
        raise no_such_path()
    is_read = request.method in ("GET", "HEAD")
    if resource.custom is not None and resource.namespaced and not namespace and not is_read:
        raise no_such_path()
    if is_nameless:
        _verb(request, resource, namespace, "name", subresource)
        raise bad_request("name must be provided")
    if watched and request.method != "GET":
        raise method_not_allowed()
    if resource.custom is not None and not watched:
        return _of_custom(request, resource, namespace, name, subresource)
    verb = "watch" if watched else _verb(request, resource, namespace, name, subresource)
    return RequestInfo(verb, resource, namespace, name, subresource)


def _of_custom(request: Request, resource: Resource, namespace: str, name: str, subresource: str) -> RequestInfo:
    """Return the verb and names of a request for a custom resource.

    Upstream has no routes for custom resources: the method alone determines the verb, and a create ignores the name.

    Raises:
        ApiError: the name is missing, or the verb is not supported.
    """
    method = "GET" if request.method == "HEAD" else request.method
    verb = _CUSTOM_VERBS.get(method) or _VERBS.get((method, bool(name)), "")
    if not verb or (subresource and verb in ("create", "delete")):
        where = f"{resource.name}.{resource.group}"
        text = f"{verb} is not supported on resources of kind {quote(where)}"
        problem = ApiError(405, text, details=object_details("", resource.group, resource.name))
        raise _deprecated(resource, problem)
    if verb in ("update", "patch") and not name:
        raise _deprecated(resource, bad_request("name must be provided"))
    if verb == "list" and read_bool(request.query, "watch"):
        verb = "watch"
    return RequestInfo(verb, resource, namespace, "" if verb == "create" else name, subresource)


def _deprecated(resource: Resource, problem: ApiError) -> ApiError:
    """Return the error of a request for a custom resource, with the warning about its version."""
    problem.warnings = [resource.deprecation]
    return problem


def is_long_running(request: Request, rest: list[str]) -> bool:
    """Return whether a request has no deadline: a watch, or a connection to a pod or service.

    Args:
        request: the request.
        rest: the segments of the path after the version.
    """
    if rest[:1] == ["watch"]:
        return True
    if len(rest) >= 3 and rest[0] == "namespaces":
        rest = rest[2:]
    if len(rest) == 1:
        return request.method == "GET" and bool(read_bool(request.query, "watch"))
    return rest[2:3] != [] and rest[2] in OF_RUNNING_PODS


def check_name(name: str) -> None:
    """Raise if a name cannot be a segment of a store key.

    Raises:
        ApiError: the name is empty, a relative path, or contains a slash or percent sign.
    """
    if not name:
        raise bad_request("Name parameter required.")
    problems = [f"may not be '{name}'"] if name in (".", "..") else []
    problems += [f"may not contain '{each}'" for each in "/%" if each in name]
    if problems:
        raise bad_request(f"Name parameter invalid: {quote(name)}: {';'.join(problems)}")


def _verb(request: Request, resource: Resource, namespace: str, name: str, subresource: str) -> str:
    facts = resource.subresources[subresource] if subresource else resource.facts
    verb = _VERBS.get((request.method, bool(name)), "")
    if subresource and request.method == "POST":
        verb = "create"
    if subresource == "proxy" and request.method in ("HEAD", "OPTIONS"):
        verb = "get"
    everywhere = resource.namespaced and not namespace
    if not verb or verb not in facts.verbs or (verb in ("create", "deletecollection") and everywhere):
        raise method_not_allowed()
    if verb == "list" and read_bool(request.query, "watch"):
        return "watch"
    return verb
