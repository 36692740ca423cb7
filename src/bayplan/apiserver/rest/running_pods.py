"""Subresources that need a running container.

The log lists the pod's lifecycle; the other subresources return an error that says why they are not available.

If nodes have real kubelets, the server cannot reach them, and the responses are upstream's for an unreachable node.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from bayplan.apiserver.model.errors import (
    ApiError,
    bad_request,
    forbidden_value,
    internal,
    invalid,
    invalid_value,
    not_found,
)
from bayplan.apiserver.model.requests import RequestInfo
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.rest.options import read_integer
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

_TEXT = "text/plain; charset=utf-8"
_HEAD = "No container runs here: pods and nodes are simulated. What happened to pod {}:"
_ACTIONS = {
    "exec": "run a command in",
    "attach": "attach to",
    "portforward": "forward a port to",
    "proxy": "connect to",
}


def answer(backend: Backend, info: RequestInfo, request: Request) -> Response:
    """Return the lifecycle of a pod as its log.

    Raises:
        ApiError: the subresource is not the log, or the object or container does not exist.
    """
    resource = info.resource
    if info.subresource != "log" and request.query.get("dryRun"):
        raise bad_request("dryRun is not supported")
    options = _log_options(info, request) if info.subresource == "log" else _LogOptions()
    if resource.table == "services":
        raise _unreachable(backend, info)
    item = backend.store.get(resource.table, (info.namespace, info.name))
    if item is None:
        raise not_found(resource.name, resource.group, info.name)
    if resource.table != "pods" or not backend.runs_pods:
        node = item.fields.get("spec.nodeName") or ""
        if info.subresource in _OF_CONTAINERS:
            _check_container(backend.document(resource, item), request.query.get("container", ""))
        if info.subresource == "log" and not node:
            return Response(204, b"", "")
        if info.subresource == "proxy" and resource.table == "pods" and not item.fields.get("status.podIP"):
            raise bad_request("address not allowed")
        if resource.table == "pods" and not node:
            raise bad_request(f"pod {info.name} does not have a host assigned")
        if resource.table == "pods" and backend.store.get("nodes", ("", node)) is None:
            raise not_found("pods", "", node)  # Upstream's message names the node, but as a pod.
        raise internal("no preferred addresses found; known addresses: []")
    pod = backend.document(resource, item)
    if info.subresource in _OF_CONTAINERS:
        _check_container(pod, request.query.get("container", ""))
    if info.subresource != "log":
        action = _ACTIONS[info.subresource]
        text = f"can't {action} pod {info.namespace}/{info.name}: no container runs here, pods and nodes are simulated"
        raise bad_request(f"{text}; try kubectl logs {info.name} -n {info.namespace} for what happened to the pod")
    lines = [_HEAD.format(f"{info.namespace}/{info.name}"), *(f"{time} {what}" for time, what in life_of(backend, pod))]
    body = "".join(f"{line}\n" for line in _tail(lines, options.tail)).encode()
    return Response(200, body if options.limit is None else body[: options.limit], _TEXT, revision=item.revision)


_OF_CONTAINERS = ("log", "exec", "attach")
"""The subresources that address a container."""


class _LogOptions(NamedTuple):
    """The options of a log.

    Attributes:
        tail: the maximum number of lines, counted from the end; None for all.
        limit: the maximum number of bytes; None for all.
    """

    tail: int | None = None
    limit: int | None = None


def _log_options(info: RequestInfo, request: Request) -> _LogOptions:
    """Return the options of a log.

    Raises:
        ApiError: the options are invalid.
    """
    query, causes = request.query, []
    seconds, time = read_integer(query, "sinceSeconds"), query.get("sinceTime")
    tail, limit = read_integer(query, "tailLines"), read_integer(query, "limitBytes")
    if tail is not None and tail < 0:
        causes.append(invalid_value("tailLines", str(tail), "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(invalid_value("limitBytes", str(limit), "must be greater than 0"))
    if seconds is not None and time is not None:
        causes.append(forbidden_value("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        causes.append(invalid_value("sinceSeconds", str(seconds), "must be greater than 0"))
    if query.get("stream"):
        # The feature gate PodLogsQuerySplitStreams is disabled.
        causes.append(forbidden_value("stream", "may not be specified"))
    if causes:
        raise invalid("PodLogOptions", "", info.name, causes)
    return _LogOptions(tail, limit)


def _unreachable(backend: Backend, info: RequestInfo) -> ApiError:
    """Return upstream's error for a Service, given as NAME, NAME:PORT or SCHEME:NAME:PORT, that has no endpoints."""
    pieces = info.name.split(":")
    if len(pieces) > 3:
        return bad_request(f"invalid service request {quote(info.name)}")
    name, port = pieces[-2:] if len(pieces) > 1 else (info.name, "")
    service = backend.find("services", info.namespace, name)
    if port.isdecimal():
        if service is None:
            return not_found("services", "", name)
        if int(port) not in [each.get("port") for each in parts(part(service, "spec"), "ports")]:
            return ApiError(503, f"no service port {port} found for service {quote(name)}")
    endpoints = backend.find("endpoints", info.namespace, name)
    if endpoints is None:
        return not_found("services", "", name)
    return ApiError(503, f"no endpoints available for service {quote(info.name)}")


def _tail(lines: list[str], count: int | None) -> list[str]:
    return lines if count is None else lines[max(0, len(lines) - count) :]


def _check_container(pod: Document, container: str) -> None:
    """Raise upstream's error if the pod lacks the container, or if it has several containers and no name is given."""
    spec, name = part(pod, "spec"), part(pod, "metadata").get("name")
    groups = ("initContainers", "containers", "ephemeralContainers")
    names = [str(each.get("name")) for group in groups for each in parts(spec, group)]
    if container and container not in names:
        raise bad_request(f"container {container} is not valid for pod {name}")
    if not container and len(parts(spec, "containers")) > 1:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")


def life_of(backend: Backend, pod: Document) -> list[tuple[str, str]]:
    """Return the lifecycle of a pod as pairs of time and text, sorted by time: status changes, and its events."""
    metadata, status = part(pod, "metadata"), part(pod, "status")
    node = part(pod, "spec").get("nodeName")
    found: list[tuple[object, str]] = [(metadata.get("creationTimestamp"), "created")]
    for condition in parts(status, "conditions"):
        if condition.get("type") == "PodScheduled":
            time = condition.get("lastTransitionTime")
            waits = f"pending: {condition.get('message') or condition.get('reason') or 'not tried yet'}"
            found.append((time, f"scheduled to node {node}" if condition.get("status") == "True" else waits))
    found.append((status.get("startTime"), f"started on node {node}"))
    for container in parts(status, "containerStatuses"):
        ended = part(container, "state", "terminated")
        if ended:
            what = f"container {container.get('name')} ended with exit code {ended.get('exitCode', 0)}"
            found.append((ended.get("finishedAt"), what))
    found.append((metadata.get("deletionTimestamp"), "grace period ends (deletionTimestamp)"))
    found += _events(backend, str(metadata.get("namespace") or ""), str(metadata.get("uid") or ""))
    return sorted([(str(time), what) for time, what in found if time], key=lambda entry: entry[0][:19])


def _events(backend: Backend, namespace: str, uid: str) -> list[tuple[object, str]]:
    found: list[tuple[object, str]] = []
    for item in sorted(backend.store.between("events", namespace), key=lambda each: each.revision):
        if item.fields.get("involvedObject.uid") != uid:
            continue
        event = cast("Document", backend.find("events", namespace, item.name))
        last = part(event, "series").get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
        count = part(event, "series").get("count") or event.get("count") or 1
        source = event.get("reportingComponent") or part(event, "source").get("component") or "unknown"
        times = f" (x{count})" if isinstance(count, int) and count > 1 else ""
        what = f"{event.get('type')} {event.get('reason')} from {source}: {event.get('message')}{times}"
        found.append((last or part(event, "metadata").get("creationTimestamp"), what))
    return found
