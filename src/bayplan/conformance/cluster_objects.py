"""The objects of a cycle case, decoded and defaulted as its README specifies, in the order for a scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.cluster.owned_pods import is_finished
from bayplan.conformance.cases import Json, JsonObject
from bayplan.engine.queued_pod import key_of
from bayplan.objects.admission import PriorityClasses
from bayplan.objects.defaults import default_namespace, default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PriorityClass


@dataclass
class ClusterObjects:
    """The objects of a case.

    Attributes:
        others: the objects of other kinds than Pod, nodes first, including namespaces that the case omits.
        bound: the pods on nodes.
        pending: the pods without a node: first those in `objects`, then the pods to schedule.
        pods_to_schedule: the keys of the pods to schedule, in order.
        given_nodes: the node in the spec of a pod to schedule, by key. It is removed in `pending`: for other pods, such
            a pod is pending and can be nominated, like any other pod. In its own cycle it has the node (see
            `as_given`).
    """

    others: list[KubernetesObject] = field(default_factory=list)
    bound: list[Pod] = field(default_factory=list)
    pending: list[Pod] = field(default_factory=list)
    pods_to_schedule: list[str] = field(default_factory=list)
    given_nodes: dict[str, str] = field(default_factory=dict)

    def as_given(self, pod: Pod) -> Pod:
        """Return a pod to schedule with the node that its spec in the case names, if any."""
        node_name = self.given_nodes.get(key_of(pod), "")
        return replace(pod, spec=replace(pod.spec, node_name=node_name)) if node_name else pod


def read_objects(case: JsonObject) -> ClusterObjects:
    """Return the objects of a case.

    Raises:
        InputError: an object cannot be decoded, or two objects of one kind have the same name.
    """
    found = ClusterObjects()
    cluster = [_decode(document) for document in _list_of(case, "objects")]
    to_schedule = [_decode(document) for document in _list_of(case, "pods")]
    classes = PriorityClasses(item for item in cluster if isinstance(item, PriorityClass))
    namespaces: dict[str, None] = {}
    for item in cluster:
        if not isinstance(item, Pod):
            found.others.append(item)
        elif not is_finished(item):
            pod = classes.resolve(item)
            (found.bound if pod.spec.node_name else found.pending).append(pod)
        if isinstance(item, Namespace):
            namespaces[item.metadata.name] = None
    for item in to_schedule:
        if not isinstance(item, Pod):
            raise InputError("$.pods", wanted="pods", got=type(item).__name__)
        pod = classes.resolve(item)
        key = key_of(pod)
        found.pods_to_schedule.append(key)
        if pod.spec.node_name:
            found.given_nodes[key] = pod.spec.node_name
            pod = replace(pod, spec=replace(pod.spec, node_name=""))
        found.pending.append(pod)
    for item in (*cluster, *to_schedule):
        name = item.metadata.namespace
        if name and name not in namespaces:
            namespaces[name] = None
            found.others.append(default_namespace(Namespace(metadata=ObjectMeta(name=name))))
    # Nodes are in the order of the case, all other objects in the order in which an API server lists them.
    found.others.sort(
        key=lambda item: ("", "") if isinstance(item, Node) else (item.metadata.namespace, item.metadata.name)
    )
    _reject_duplicates([*found.others, *found.bound, *found.pending])
    return found


def _decode(document: JsonObject) -> KubernetesObject:
    return default_object(decode(document))


def _list_of(case: JsonObject, name: str) -> list[JsonObject]:
    documents: Json = case.get(name) or []
    if not isinstance(documents, list):
        raise InputError(f"$.{name}", wanted="a list", got=repr(documents))
    return [document for document in documents if isinstance(document, dict)]


def _reject_duplicates(items: list[KubernetesObject]) -> None:
    seen: dict[tuple[type, str, str], None] = {}
    for item in items:
        key = (type(item), item.metadata.namespace, item.metadata.name)
        if key in seen:
            raise InputError(f"{type(item).__name__} {key[1]}/{key[2]} is defined twice")
        seen[key] = None
