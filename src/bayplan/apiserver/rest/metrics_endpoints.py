"""``metrics.k8s.io``: the usage of nodes and pods. By default it equals the pods' requests, because no containers run.

The annotations ``bayplan.io/cpu-usage`` and ``bayplan.io/memory-usage`` of a pod set the usage of each of its
containers, to test autoscalers.

Source: https://github.com/kubernetes/metrics, the API of metrics-server; the APIService comes from metrics-server's
manifests.
"""

from __future__ import annotations

from bayplan.apiserver.model.errors import method_not_allowed, no_such_path, not_found
from bayplan.apiserver.model.selectors import parse_fields, parse_labels
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.listing import check_revision
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.rest.negotiation import negotiate, wants_indentation
from bayplan.apiserver.rest.options import list_options
from bayplan.apiserver.rest.own_objects import create_missing
from bayplan.apiserver.rest.rendering import encode_document
from bayplan.apiserver.schema.facts import ResourceFacts
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.quantity import Quantity

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
CPU_USAGE, MEMORY_USAGE = "bayplan.io/cpu-usage", "bayplan.io/memory-usage"
_ANNOTATIONS = {"cpu": CPU_USAGE, "memory": MEMORY_USAGE}
_API_VERSION = f"{GROUP}/{VERSION}"
_SERVICE = "apiregistration.k8s.io/apiservices"
_WINDOW = "15s"
_FACTS = [
    ResourceFacts(name="nodes", singular_name="", namespaced=False, kind="NodeMetrics", verbs=("get", "list")),
    ResourceFacts(name="pods", singular_name="", namespaced=True, kind="PodMetrics", verbs=("get", "list")),
]
_ZERO = Quantity(0)


class MetricsEndpoints:
    """Handles requests to ``metrics.k8s.io``.

    Args:
        backend: the backend of the API.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def publish(self) -> None:
        """List the group in discovery, and store its APIService unless it exists."""
        registry = self._backend.registry
        registry.put_group(GROUP, VERSION, list(_FACTS))
        spec: Document = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 100, "versionPriority": 100}
        document: Document = {"metadata": {"name": f"{VERSION}.{GROUP}"}, "spec": spec}
        create_missing(self._backend, "apiregistration.k8s.io", "apiservices", document)

    def handle(self, request: Request, rest: list[str]) -> Response:
        """Return the usage of one object, or of all selected objects.

        Args:
            request: the complete request.
            rest: the segments of the path after the version.

        Raises:
            ApiError: the path or object does not exist, or the request is not a read.
        """
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        if not rest or rest[0] not in ("nodes", "pods") or len(rest) > 2 or (namespace and rest[0] == "nodes"):
            raise no_such_path()
        if request.method not in ("GET", "HEAD") or "watch" in request.query:
            raise method_not_allowed()
        is_pod = rest[0] == "pods"
        pretty = wants_indentation(request.query, request.headers)
        form = negotiate(request.headers.get("accept", ""), untyped=True, pretty=pretty)
        if len(rest) == 2:
            table, key = ("pods", (namespace, rest[1])) if is_pod else ("nodes", ("", rest[1]))
            found = self._backend.find(table, *key)
            if found is None or (is_pod and not _runs(found)):
                raise not_found("podmetrics" if is_pod else "nodemetrics", GROUP, rest[1])
            one = self._pod(found) if is_pod else self._node(found, self._running())
            return Response(200, encode_document(one, form), form.media_type)
        kind = "PodMetricsList" if is_pod else "NodeMetricsList"
        items = self._selected(request, is_pod=is_pod, namespace=namespace)
        body: Document = {"kind": kind, "apiVersion": _API_VERSION, "metadata": {}, "items": list(items)}
        return Response(200, encode_document(body, form), form.media_type)

    def _running(self) -> list[Document]:
        return [pod for pod in self._backend.all("pods") if _runs(pod)]

    def _selected(self, request: Request, *, is_pod: bool, namespace: str) -> list[Document]:
        options = list_options(request.query, watch=False)
        check_revision(request.query)
        labels = parse_labels(options.label_selector)
        fields = parse_fields(options.field_selector, _refuse_field)
        running = self._running()

        def chosen(document: Document) -> bool:
            metadata = part(document, "metadata")
            own = {key: str(value) for key, value in part(metadata, "labels").items()}
            named = {f"metadata.{name}": str(metadata.get(name) or "") for name in ("name", "namespace")}
            return all(each.matches(own) for each in labels) and all(
                (named[each.field] == each.value) is not each.negated for each in fields
            )

        if not is_pod:
            return [self._node(each, running) for each in self._backend.all("nodes") if chosen(each)]
        here = [pod for pod in running if not namespace or part(pod, "metadata").get("namespace") == namespace]
        return [self._pod(pod) for pod in here if chosen(pod)]

    def _pod(self, pod: Document) -> Document:
        containers = [
            {"name": container.get("name"), "usage": {name: str(usage[name]) for name in usage}}
            for container, usage in _usages(pod)
        ]
        return {"kind": "PodMetrics", "apiVersion": _API_VERSION, **self._head(pod), "containers": containers}

    def _node(self, node: Document, running: list[Document]) -> Document:
        name = part(node, "metadata").get("name")
        total = {"cpu": _ZERO, "memory": _ZERO}
        for pod in running:
            if part(pod, "spec").get("nodeName") == name:
                for _, usage in _usages(pod):
                    total = {each: total[each] + usage[each] for each in total}
        shown = {each: str(amount) for each, amount in total.items()}
        return {"kind": "NodeMetrics", "apiVersion": _API_VERSION, **self._head(node), "usage": shown}

    def _head(self, document: Document) -> Document:
        metadata, now = part(document, "metadata"), self._backend.now()
        kept = {name: metadata[name] for name in ("name", "namespace", "labels") if metadata.get(name)}
        return {"metadata": {**kept, "creationTimestamp": now}, "timestamp": now, "window": _WINDOW}


def _refuse_field(field: str) -> str:
    return "" if field in ("metadata.name", "metadata.namespace") else f'"{field}" is not a known field selector'


def _runs(pod: Document) -> bool:
    return part(pod, "status").get("phase") == "Running" and bool(part(pod, "spec").get("nodeName"))


def _usages(pod: Document) -> list[tuple[Document, dict[str, Quantity]]]:
    """Return the containers of a pod, including restartable init containers, each with its usage by resource."""
    spec, annotations = part(pod, "spec"), part(pod, "metadata", "annotations")
    sidecars = [each for each in parts(spec, "initContainers") if each.get("restartPolicy") == "Always"]
    return [
        (each, {name: _usage(each, name, annotations) for name in _ANNOTATIONS})
        for each in (*parts(spec, "containers"), *sidecars)
    ]


def _usage(container: Document, name: str, annotations: Document) -> Quantity:
    """Return a container's usage of a resource: the pod's annotation, else the container's request, else 0."""
    for text in (annotations.get(_ANNOTATIONS[name]), part(container, "resources", "requests").get(name)):
        if text is not None:
            try:
                return Quantity.parse(str(text))
            except InputError:
                continue
    return _ZERO
