"""Requests to a Kubernetes API as values, and the requests that kube-scheduler sends for one pod or object.

Bodies are JSON. Their contents and the paths equal kube-scheduler v1.36.3's.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.base.version import KUBERNETES_VERSION
from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

JSON = "application/json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
USER_AGENT = f"kube-scheduler/{KUBERNETES_VERSION} (bayplan) kubernetes/scheduler"
"""The API server uses the part before the first slash as the field manager, as for the stock scheduler."""

NO_ANSWER = 0
"""The status of an `ApiResponse` if there was no response; the body contains the reason."""

_encode = msgspec.json.encode


class ApiRequest(msgspec.Struct, frozen=True, gc=False):
    """One request.

    Attributes:
        method: the method in upper case.
        path: the path without query.
        body: the complete body, possibly empty.
        content_type: the content type of the body.
        query: the part after the question mark, or "".
    """

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    query: str = ""


class _StatusBody(msgspec.Struct):
    message: str = ""
    reason: str = ""


class ApiResponse(msgspec.Struct, frozen=True, gc=False):
    """The response to a request.

    Attributes:
        status: the HTTP status code; `NO_ANSWER` if there was no response.
        body: the complete body; the reason if there was no response.
    """

    status: int
    body: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """The error message in the response, or the reason if there was no response."""
        if self.status == NO_ANSWER:
            return self.body.decode(errors="replace")
        try:
            message = msgspec.json.decode(self.body, type=_StatusBody).message
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = ""
        return message or f"the server answered with status {self.status}"


def path_of(struct: type[KubernetesObject], namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a kind's collection, of one object, or of a subresource.

    Args:
        struct: the kind.
        namespace: the namespace; "" for cluster-scoped kinds, and for all namespaces.
        name: the name of the object; "" for the collection.
        subresource: the subresource, e.g. ``status``, or "".
    """
    kind = kind_of(struct)
    path = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    if namespace and kind.namespaced:
        path += f"/namespaces/{namespace}"
    path += f"/{kind.plural}"
    if name:
        path += f"/{name}"
    return f"{path}/{subresource}" if subresource else path


def get_request(item: KubernetesObject) -> ApiRequest:
    """Return the request that reads an object."""
    metadata = item.metadata
    return ApiRequest("GET", path_of(type(item), metadata.namespace, metadata.name))


def update_request(item: KubernetesObject, document: Mapping[str, object], *, subresource: str = "") -> ApiRequest:
    """Return the request that replaces an object, or a subresource of it, with a document."""
    metadata = item.metadata
    path = path_of(type(item), metadata.namespace, metadata.name, subresource)
    return ApiRequest("PUT", path, _encode(document))


def create_request(item: KubernetesObject, document: Mapping[str, object]) -> ApiRequest:
    """Return the request that creates an object."""
    return ApiRequest("POST", path_of(type(item), item.metadata.namespace), _encode(document))


def binding_request(pod: Pod, node_name: str) -> ApiRequest:
    """Return the request that binds a pod to a node. It fails if the name now belongs to a different pod."""
    metadata = pod.metadata
    binding = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "target": {"kind": "Node", "name": node_name},
    }
    path = f"/api/v1/namespaces/{metadata.namespace}/pods/{metadata.name}/binding"
    return ApiRequest("POST", path, _encode(binding))


def delete_request(pod: Pod) -> ApiRequest:
    """Return the request that deletes a pod with its own grace period."""
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
    return ApiRequest("DELETE", path, b'{"kind":"DeleteOptions","apiVersion":"v1"}')


def pod_status_request(pod: Pod, patch: Mapping[str, object]) -> ApiRequest:
    """Return the request that patches the status of a pod."""
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}/status"
    return ApiRequest("PATCH", path, _encode(patch), STRATEGIC_MERGE_PATCH)
