"""Requests about a stored object, except creates and updates: patches, subresources, deletes, lists, media types, parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

from mutations import Document, Schema, changed_objects

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
NAMESPACE = "shop"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_KEEPING = ("patch", "apply", "status", "scale", "sub")
"""Requests whose responses are compared with their managed fields."""


@dataclass
class Ask:
    """One request.

    Attributes:
        op: the kind of request, such as ``patch``.
        method: the HTTP method.
        path: the path with parameters.
        mutation: a description of what is special in this request.
        body: a document, or the text to send.
        headers: the headers other than those for JSON.
    """

    op: str
    method: str
    path: str
    mutation: str = ""
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def keeps_fields(self) -> bool:
        """Whether managed fields are part of the compared response."""
        return self.op in _KEEPING

    def request(self, *, dry_run: bool) -> Document:
        """Return the request as `record_api.Server` sends it."""
        path = self.path
        if dry_run and "dryRun=" not in path:
            path += ("&" if "?" in path else "?") + "dryRun=All"
        headers = {"Accept": JSON} | ({"Content-Type": JSON} if self.body is not None else {}) | self.headers
        found: Document = {
            "method": self.method,
            "path": path,
            "headers": {name: value for name, value in headers.items() if value},
        }
        return found if self.body is None else {**found, "body": self.body}

    def line(self) -> Document:
        """Return the request as a line of the file of mutants."""
        found: Document = {"op": self.op, "method": self.method, "path": self.path}
        if self.headers:
            found["headers"] = self.headers
        found["mutation"] = self.mutation.replace("\x1f", "/")
        if self.body is not None:
            found["request"] = self.body
        return found


def subresource_asks(schema: Schema, kind: str, path: str, body: Document, subresources: set[str]) -> Iterator[Ask]:
    """Yield requests to the scale of an object, and to the subresources of pods and other kinds."""
    if "scale" in subresources:
        name = path.rpartition("/")[2]
        scale: Document = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": 5},
        }
        yield Ask("scale", "GET", f"{path}/scale", "read")
        yield Ask("scale", "PUT", f"{path}/scale", "as it is", scale)
        for mutation, changed in changed_objects(schema, scale, f"{kind} scale", 14, None):
            yield Ask("scale", "PUT", f"{path}/scale", mutation, changed)
        for patch in (
            {"spec": {"replicas": 7}},
            {"spec": {"replicas": -1}},
            {"spec": {"replicas": None}},
            {"spec": {"nope": 1}},
        ):
            yield Ask("scale", "PATCH", f"{path}/scale", f"merge {patch}", patch, {"Content-Type": MERGE})
        applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}}
        yield Ask("scale", "PATCH", f"{path}/scale?fieldManager=me", "apply", applied, {"Content-Type": APPLY})
    if kind == "Pod":
        yield from _pod_asks(path, body)


def _pod_asks(path: str, body: Document) -> Iterator[Ask]:
    spec: Document = body["spec"]  # type: ignore[assignment]
    added = {"name": "debug", "image": "busybox"}
    for more in (
        {},
        {"targetContainerName": "main"},
        {"targetContainerName": "none"},
        {"name": "main"},
        {"name": ""},
        {"image": ""},
        {"ports": [{"containerPort": 80}]},
        {"resources": {"limits": {"cpu": "1"}}},
        {"lifecycle": {"preStop": {"exec": {"command": ["a"]}}}},
        {"livenessProbe": {"exec": {"command": ["a"]}}},
        {"stdin": True, "tty": True},
        {"volumeMounts": [{"name": "no", "mountPath": "/a"}]},
        {"restartPolicy": "Always"},
        {"securityContext": {"privileged": True}},
        {"env": [{"name": "A", "value": "b"}]},
    ):
        each = {**added, **more}
        changed = copy.deepcopy(body)
        changed["spec"]["ephemeralContainers"] = [each]  # type: ignore[index]
        yield Ask("sub", "PUT", f"{path}/ephemeralcontainers", f"with {more}", changed)
        patch = {"spec": {"ephemeralContainers": [each]}}
        yield Ask("sub", "PATCH", f"{path}/ephemeralcontainers", f"with {more}", patch, {"Content-Type": STRATEGIC})
    name = spec["containers"][0]["name"]  # type: ignore[index]
    for resources in (
        {"requests": {"cpu": "150m"}},
        {"requests": {"cpu": "0"}},
        {"limits": {"cpu": "2"}},
        {"limits": {"memory": "1Gi"}},
        {"requests": {"memory": "-1"}},
        {"requests": {"example.com/dongle": "1"}},
        {"requests": None, "limits": None},
        {"requests": {"cpu": "3"}, "limits": {"cpu": "1"}},
        {"requests": {"ephemeral-storage": "1Gi"}},
        {"claims": [{"name": "x"}]},
        {"requests": {"cpu": "abc"}},
    ):
        patch = {"spec": {"containers": [{"name": name, "resources": resources}]}}
        yield Ask("sub", "PATCH", f"{path}/resize", f"to {resources}", patch, {"Content-Type": STRATEGIC})
    patch = {"spec": {"containers": [{"name": name, "image": "other"}]}}
    yield Ask("sub", "PATCH", f"{path}/resize", "another image", patch, {"Content-Type": STRATEGIC})
    eviction: Document = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": path.rpartition("/")[2], "namespace": NAMESPACE},
    }
    for more in (
        {},
        {"deleteOptions": {"gracePeriodSeconds": 3}},
        {"deleteOptions": {"gracePeriodSeconds": -1}},
        {"kind": "Pod"},
        {"metadata": {"name": "other"}},
        {"deleteOptions": {"propagationPolicy": "Nope"}},
        {"deleteOptions": {"preconditions": {"uid": "x"}}},
        {"deleteOptions": {"dryRun": ["Some"]}},
    ):
        yield Ask("sub", "POST", f"{path}/eviction", f"with {more}", {**eviction, **more})
    binding: Document = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": path.rpartition("/")[2]}}
    for target in ({"kind": "Node", "name": "n1"}, {"name": "n1"}, {"kind": "Pod", "name": "n1"}, {"kind": "Node"}, {}):
        yield Ask("sub", "POST", f"{path}/binding", f"to {target}", {**binding, "target": target})


def varied_asks(collection: str, path: str, body: Document, *, is_small: bool) -> Iterator[Ask]:
    """Yield patches, deletes, lists and requests with unusual media types about a stored object."""
    yield from _patches(path, body)
    yield from _applies(path, body)
    if is_small:
        yield from _deletes(path)
        yield from _reads(collection, path, body)
        yield from _media_types(collection, body)


def _patches(path: str, body: Document) -> Iterator[Ask]:
    fields = [name for name in body if name not in ("apiVersion", "kind", "metadata")]
    merges: list[Document] = [
        {"metadata": {"labels": {"x": "y"}}},
        {"metadata": {"labels": {"x": "Bad Value!"}}},
        {"metadata": {"annotations": {"Bad Key!": "v"}}},
        {"metadata": {"finalizers": ["bad"]}},
        {"metadata": {"name": "other"}},
        {"metadata": {"uid": "other"}},
        {"metadata": {"resourceVersion": "1"}},
        {"metadata": {"ownerReferences": [{"kind": "Pod"}]}},
        {"metadata": {"generation": 7, "creationTimestamp": None}},
        {"kind": "Nope"},
        {"apiVersion": "v9"},
        {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 5}},
        {"nope": 1},
        {"metadata": "x"},
        {},
    ]
    for name in fields[:4]:
        value = body[name]
        merges += [{name: None}, {name: "x"}]
        if isinstance(value, dict):
            merges += [{name: {inner: None}} for inner in list(value)[:6]] + [{name: {"nope": 1}}]
    for index, merge in enumerate(merges):
        media = (MERGE, STRATEGIC)[index % 2]
        yield Ask("patch", "PATCH", path, f"{media[12:21]} {merge}"[:200], merge, {"Content-Type": media})
    first = fields[0] if fields else "metadata"
    operations: list[object] = [
        [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
        [{"op": "remove", "path": f"/{first}"}],
        [{"op": "replace", "path": f"/{first}", "value": 5}],
        [{"op": "remove", "path": "/nope"}],
        [{"op": "nope", "path": "/metadata"}],
        [{"op": "test", "path": "/kind", "value": body["kind"]}],
        [{"op": "test", "path": "/kind", "value": "Nope"}],
        [{"op": "add", "path": "nope", "value": 1}],
        [{"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations"}],
        [{"op": "move", "from": "/metadata/name", "path": "/metadata/namespace"}],
        [{"op": "replace", "path": "/metadata/name", "value": "other"}],
        {"op": "add"},
        [],
        [{"op": "add", "path": "/metadata/labels/a", "value": "b"}],
        "x",
        "[",
        [{"op": "add", "path": f"/{first}/nope", "value": 1}],
        [{"op": "replace", "path": "/metadata/labels/none", "value": "b"}],
    ]
    for operation in operations:
        yield Ask("patch", "PATCH", path, f"json {operation}"[:200], operation, {"Content-Type": JSON_PATCH})
    for media in (
        "application/json",
        "text/plain",
        "",
        "application/yaml",
        "application/merge-patch+json; charset=utf-8",
        "application/apply-patch+cbor",
    ):
        yield Ask("patch", "PATCH", path, f"as {media}", {"metadata": {"labels": {"a": "b"}}}, {"Content-Type": media})
    for text in ("", "null", "[]", "{", '"x"', '{"metadata":{"labels":{"a":1}}}', '{"a":1,"a":2}'):
        for media in (MERGE, STRATEGIC):
            yield Ask(
                "patch",
                "PATCH",
                f"{path}?fieldValidation=Strict",
                f"{media[12:21]} text {text}",
                text,
                {"Content-Type": media},
            )


def _applies(path: str, body: Document) -> Iterator[Ask]:
    head: Document = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    name = path.rpartition("/")[2]
    yield Ask("apply", "PATCH", f"{path}?fieldManager=me", "the whole object", body, {"Content-Type": APPLY})
    yield Ask(
        "apply",
        "PATCH",
        f"{path}?fieldManager=me&force=true",
        "the whole object by force",
        body,
        {"Content-Type": APPLY},
    )
    partial = {**head, "metadata": {"name": name, "labels": {"by": "me"}, "annotations": {"by.example.com/x": "me"}}}
    yield Ask("apply", "PATCH", f"{path}?fieldManager=me", "labels", partial, {"Content-Type": APPLY})
    yield Ask("apply", "PATCH", path, "no manager", partial, {"Content-Type": APPLY})
    yield Ask("apply", "PATCH", f"{path}?fieldManager=me&force=maybe", "force=maybe", partial, {"Content-Type": APPLY})
    yield Ask("apply", "PATCH", f"{path}?fieldManager={'m' * 129}", "a long manager", partial, {"Content-Type": APPLY})
    yield Ask(
        "apply",
        "PATCH",
        f"{path}?fieldManager=me&fieldValidation=Strict",
        "unknown",
        {**partial, "nope": 1},
        {"Content-Type": APPLY},
    )
    yield Ask("apply", "PATCH", f"{path}?fieldManager=me", "unknown", {**partial, "nope": 1}, {"Content-Type": APPLY})
    for more in (
        {"metadata": {"name": "other"}},
        {"metadata": {}},
        {"kind": "Nope"},
        {"apiVersion": "v9"},
        {"apiVersion": None},
        {"metadata": {"managedFields": []}},
        {"metadata": {"name": name, "resourceVersion": "1"}},
        {"metadata": {"name": name, "uid": "x"}},
        {"metadata": {"name": name, "labels": {"a": 1}}},
    ):
        yield Ask(
            "apply", "PATCH", f"{path}?fieldManager=me", f"with {more}", {**head, **more}, {"Content-Type": APPLY}
        )


def _deletes(path: str) -> Iterator[Ask]:
    for options in (
        None,
        {"gracePeriodSeconds": 0},
        {"gracePeriodSeconds": 5},
        {"gracePeriodSeconds": -1},
        {"propagationPolicy": "Orphan"},
        {"propagationPolicy": "Foreground"},
        {"propagationPolicy": "Nope"},
        {"orphanDependents": True},
        {"orphanDependents": False, "propagationPolicy": "Orphan"},
        {"preconditions": {"uid": "x"}},
        {"preconditions": {"resourceVersion": "1"}},
        {"dryRun": ["All"]},
        {"dryRun": ["Some"]},
        {"kind": "Pod"},
        {"apiVersion": "v9", "kind": "DeleteOptions"},
        {"kind": "DeleteOptions", "apiVersion": "v1", "nope": 1},
        {"gracePeriodSeconds": "x"},
        {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
        "x",
        "[]",
    ):
        # The server ignores the parameters of a DELETE that has a body.
        body = {"dryRun": ["All"], **options} if isinstance(options, dict) else options
        yield Ask("delete", "DELETE", path, f"with {options}", body)
    for query in (
        "gracePeriodSeconds=3",
        "gracePeriodSeconds=x",
        "propagationPolicy=Foreground",
        "propagationPolicy=Nope",
        "orphanDependents=true",
        "dryRun=Some",
        "pretty=true",
        "nope=1",
    ):
        yield Ask("delete", "DELETE", f"{path}?{query}", query)
    yield Ask("delete", "DELETE", f"{path}-not", "an object that is not there")


def _lists(collection: str, name: str) -> Iterator[Ask]:
    for query in (
        "",
        "labelSelector=a%3Db",
        "labelSelector=a%20in%20%28b%2Cc%29%2C%21d",
        "labelSelector=%21a",
        "labelSelector=a%3D%3D%3Db",
        "labelSelector=Bad%20Key%21%3Db",
        "labelSelector=a%3DBad%20Value%21",
        "labelSelector=a%3E5",
        "labelSelector=a%3Ex",
        "labelSelector=a%20notin%20%28%29",
        "labelSelector=a%20in%20b",
        f"fieldSelector=metadata.name%3D{name}",
        f"fieldSelector=metadata.name%21%3D{name}",
        "fieldSelector=metadata.namespace%3Dshop",
        "fieldSelector=spec.nope%3Dx",
        "fieldSelector=status.phase%3DRunning",
        "fieldSelector=type%3DOpaque",
        "fieldSelector=a",
        "fieldSelector=a%20in%20%28b%29",
        "limit=1",
        "limit=-1",
        "limit=x",
        "continue=x",
        "continue=abc&resourceVersion=1",
        "resourceVersion=0",
        "resourceVersion=x",
        "resourceVersion=-1",
        "resourceVersion=99999999999",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Nope&resourceVersion=1",
        "resourceVersionMatch=NotOlderThan",
        "timeoutSeconds=x",
        "timeoutSeconds=-1",
        "timeoutSeconds=1",
        "pretty=true",
        "pretty=x",
        "nope=1",
        "watch=0",
        "sendInitialEvents=true",
        "sendInitialEvents=x",
        "allowWatchBookmarks=true",
        "limit=1&limit=2",
        "shardSelector=x",
    ):
        yield Ask("list", "GET", f"{collection}?{query}" if query else collection, query)


def _reads(collection: str, path: str, body: Document) -> Iterator[Ask]:
    name = path.rpartition("/")[2]
    yield from _lists(collection, name)
    for accept in (
        _TABLE,
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        "application/json;as=Table;v=v2;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=Nope;v=v1;g=meta.k8s.io",
        "application/yaml",
        "text/html",
        "*/*",
        "application/*",
        "text/plain, application/json;q=0.5",
        "application/json;q=0",
        "application/json;stream=watch",
        "application/cbor",
        "garbage",
        ",",
        "application/json;as=Table",
        "application/yaml;as=Table;v=v1;g=meta.k8s.io",
        f"{_TABLE},application/json",
        "application/vnd.kubernetes.protobuf,application/json;q=0.9",
    ):
        for where in (path, collection):
            yield Ask("get", "GET", where, f"accept {accept}", None, {"Accept": accept})
    for choice in ("None", "Metadata", "Object", "Nope"):
        yield Ask("get", "GET", f"{path}?includeObject={choice}", f"table with {choice}", None, {"Accept": _TABLE})
    for query in (
        "resourceVersion=0",
        "resourceVersion=x",
        "resourceVersion=99999999999",
        "pretty=true",
        "nope=1",
        "export=true",
    ):
        yield Ask("get", "GET", f"{path}?{query}", query)
    for suffix in ("-not", "/nope", "/status", "/scale", "%2F", "/status/more", "/log", "/exec"):
        yield Ask("get", "GET", path + suffix, f"path {suffix}")
    for method in ("HEAD", "OPTIONS", "TRACE", "POST"):
        yield Ask("get", method, path, f"method {method}")


def _media_types(collection: str, body: Document) -> Iterator[Ask]:
    renamed = {**body, "metadata": {**body["metadata"], "name": "another"}}  # type: ignore[dict-item]
    for media in (
        "",
        "text/plain",
        "application/yaml",
        "application/json; charset=utf-8",
        "application/x-www-form-urlencoded",
        "application/vnd.kubernetes.protobuf",
        "application/cbor",
        "application/JSON",
        "json",
    ):
        yield Ask("media", "POST", collection, f"as {media}", renamed, {"Content-Type": media})
    for text in (
        "",
        "{}",
        "[]",
        "null",
        "x",
        "{",
        '{"kind":',
        '"x"',
        "5",
        '{"kind":"Nope","apiVersion":"v1"}',
        '{"metadata":{"name":"a"}}',
        '{"metadata":{"name":"a","name":"b"}}',
    ):
        yield Ask("media", "POST", collection, f"text {text}", text)
    for validation in ("Strict", "Warn", "Ignore", "Nope"):
        for more in ({"nope": 1}, {"metadata": {**renamed["metadata"], "nope": {"a": 1}}}, {"Kind": "x"}):  # type: ignore[dict-item]
            yield Ask(
                "media",
                "POST",
                f"{collection}?fieldValidation={validation}",
                f"{validation} {more}"[:80],
                {**renamed, **more},
            )
    for query in (
        "dryRun=Some",
        "dryRun=All&dryRun=All",
        "fieldManager=",
        f"fieldManager={'m' * 129}",
        "fieldManager=a%01b",
        "fieldManager=ok",
        "pretty=true",
        "nope=1",
    ):
        yield Ask("media", "POST", f"{collection}?{query}", query[:60], renamed)
    namespaced = {**renamed, "metadata": {**renamed["metadata"], "namespace": "other"}}  # type: ignore[dict-item]
    yield Ask("media", "POST", collection, "another namespace", namespaced)
    yield Ask("media", "PUT", f"{collection}/another", "an object that is not there", renamed)
    for accept in (
        "application/yaml",
        "text/html",
        _TABLE,
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/cbor",
    ):
        yield Ask("media", "POST", collection, f"accept {accept}", renamed, {"Accept": accept})
