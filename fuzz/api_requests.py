"""Random API requests with up to four mistakes: in the path, method, parameters, media types and body.

No request stores anything: writes are dry runs. So the order of requests does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuzz.draws import Draws

NAMES = (*("a", "default", "Bad_Name", "cluster-admin"), "x" * 260, "a.b", ".", "..", "%2e", "a%2Fb")
NAMESPACES = ("default", "default", "none", "kube-system")
SUBRESOURCES = (
    *("status", "scale", "log", "exec", "binding", "eviction", "token", "approval", "finalize", "resize", "proxy"),
    *("ephemeralcontainers", "portforward", "attach", "none", "status/x"),
)
METHODS = (*("GET",) * 5, "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "DELETE", "HEAD", "OPTIONS", "TRACE")
WRITES = ("POST", "PUT", "PATCH", "DELETE")
PARAMETERS = (
    *("limit=-1", "limit=x", "limit=0", "limit=1", "continue=abc", "continue=", "limit=1&continue="),
    *("resourceVersion=abc", "resourceVersion=0", "resourceVersion=999999999", "resourceVersionMatch=Exact"),
    *("resourceVersionMatch=NotOlderThan", "resourceVersionMatch=bad&resourceVersion=1"),
    *("resourceVersion=0&resourceVersionMatch=Exact", "fieldValidation=Bad", "fieldValidation=Strict"),
    *("dryRun=bad", "dryRun=All&dryRun=All", "dryRun=", "fieldManager=a/b", f"fieldManager={'x' * 129}"),
    *("propagationPolicy=Bad", "propagationPolicy=Orphan", "orphanDependents=true"),
    *("orphanDependents=true&propagationPolicy=Foreground", "gracePeriodSeconds=-1", "gracePeriodSeconds=x"),
    *("labelSelector=a%20in", "labelSelector=a=b", "labelSelector=!", "labelSelector=a/b/c=d"),
    *("fieldSelector=metadata.name=x", "fieldSelector=spec.none=1", "fieldSelector=metadata.name"),
    *("fieldSelector=status.phase!=Running", "includeObject=Bad", "pretty=true", "pretty=x", "timeout=1x"),
    *("timeout=0", "timeout=5s", "timeoutSeconds=-1", "allowWatchBookmarks=x", "sendInitialEvents=true"),
    *("sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "watch=0", "force=x", "export=true", "tailLines=x"),
)
CONTENT_TYPES = (
    *("application/json", "application/yaml", "application/merge-patch+json", "application/strategic-merge-patch+json"),
    *("application/json-patch+json", "application/apply-patch+yaml", "text/plain", ""),
    *("application/vnd.kubernetes.protobuf", "application/json; charset=utf-8", "application/apply-patch+cbor"),
    *("application/json-patch+json; x", "APPLICATION/JSON"),
)
PATCH_TYPES = CONTENT_TYPES[2:6]
ACCEPTED = (
    *("application/json", "*/*", "", "application/yaml", "text/html", "application/cbor", "application/json;q=0"),
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    *("application/json;as=None;g=meta.k8s.io;v=v1", "application/json;stream=watch"),
    "application/xml,application/json;q=0.5",
)
BODIES = (
    *(b"", b"{}", b"null", b"[]", b'"x"', b"{", b'{"metadata":5}', b'{"spec":[]}', b"metadata: {name: a}\n"),
    *(b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"Bad_Name"}}', b'{"metadata":{"name":"a","name":"b"}}'),
    *(b'{"metadata":{"name":"x","namespace":"other"}}', b'{"kind":"None","apiVersion":"v1"}', b'{"apiVersion":"v2"}'),
    *(b'{"metadata":{"name":"a"},"spec":{"none":1}}', b'{"metadata":{"labels":{"a b":"c"},"name":"a"}}'),
    *(b'{"metadata":{"name":"a","uid":"x","resourceVersion":"5"}}', b'{"metadata":{"name":"a","finalizers":["x"]}}'),
    *(b'{"metadata":{"name":"a","ownerReferences":[{}]}}', b'{"metadata":{"name":"a","annotations":{"x":1}}}'),
    *(b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}', b'[{"op":"add","path":"/x","value":1}]'),
    *(b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":-5}', b'[{"op":"bad"}]'),
)
DELETE_BODIES = (b"", b"[]", b'"x"', b"{", *(each[:-1] + b',"dryRun":["All"]}' for each in BODIES if each[:2] == b'{"'))
"""Bodies of deletions, whose options replace those in the query: all that can be decoded request a dry run."""


@dataclass(frozen=True)
class ResourcePath:
    """A served resource: the path of its group version, its name, and whether it is namespaced."""

    version: str
    name: str
    namespaced: bool


@dataclass(frozen=True)
class ApiRequest:
    """A request: the resource in its path, method, path with query, headers, and body."""

    resource: ResourcePath
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def random_request(seed: int, number: int, resources: list[ResourcePath]) -> ApiRequest:
    """Return the request with a number in the stream of a seed."""
    draws = Draws(f"request {seed} {number}")
    method = draws.one(METHODS)
    parameters = [draws.one(PARAMETERS) for _ in range(draws.one((0, 0, 1, 1, 2)))]
    if method not in ("GET", "HEAD"):
        parameters.append("dryRun=All")
    headers = {"Accept": draws.one(ACCEPTED) if draws.chance(0.5) else "application/json"}
    body = b""
    if method in WRITES:
        body = draws.one(BODIES) if method != "DELETE" else draws.one(DELETE_BODIES)
        usual = draws.one(PATCH_TYPES) if method == "PATCH" else "application/json"
        headers["Content-Type"] = draws.one(CONTENT_TYPES) if draws.chance(0.5) else usual
    resource = draws.one(resources)
    path = _path(draws, resource)
    if "/watch/" in path:
        parameters.append("timeoutSeconds=1")
    return ApiRequest(resource, method, "?".join([path, "&".join(parameters)] if parameters else [path]), headers, body)


def _path(draws: Draws, resource: ResourcePath) -> str:
    path = resource.version + ("/watch" if draws.chance(0.03) else "")
    if resource.namespaced and draws.chance(0.67):
        path += f"/namespaces/{draws.one(NAMESPACES)}"
    path += f"/{resource.name}"
    if draws.chance(0.5):
        path += f"/{draws.one(NAMES)}"
    if draws.chance(0.25):
        path += f"/{draws.one(SUBRESOURCES)}"
    return path + ("/" if draws.chance(0.05) else "")
