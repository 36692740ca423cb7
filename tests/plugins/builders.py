"""Small nodes and pods for tests of plugins, and a cluster state that contains them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle, Plugin
from bayplan.framework.preemption.evaluator import PreemptionChoices
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

P = TypeVar("P", bound=Plugin[Any])


def make_node(
    name: str = "n1",
    offers: Mapping[str, str] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    images: Sequence[tuple[Sequence[str], int]] = (),
    features: Sequence[str] = (),
) -> Node:
    """Return a node with the capacity `offers`, by default 4 CPUs, 8 GiB and 110 pods."""
    amounts = dict(offers if offers is not None else {"cpu": "4", "memory": "8Gi", "pods": "110"})
    node = _decode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": dict(labels or {})},
            "spec": {"taints": [dict(taint) for taint in taints], "unschedulable": unschedulable},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "images": [{"names": list(names), "sizeBytes": size} for names, size in images],
                "declaredFeatures": list(features),
            },
        }
    )
    assert isinstance(node, Node)
    return node


def make_pod(
    name: str = "p",
    requests: Mapping[str, str] | None = None,
    *,
    ports: Sequence[Mapping[str, object]] = (),
    image: str = "",
    uid: str = "",
    status: Mapping[str, object] | None = None,
    **spec: object,
) -> Pod:
    """Return a pod with one container; other keyword arguments are fields of its spec, spelled as in manifests."""
    container: dict[str, object] = {"name": "c", "image": image, "ports": [dict(port) for port in ports]}
    container["resources"] = {"requests": dict(requests or {})}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"}
    pod = _decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], **spec},
            "status": dict(status or {}),
        }
    )
    assert isinstance(pod, Pod)
    return pod


def make_state(nodes: Iterable[Node], pods: Iterable[tuple[Pod, str]] = ()) -> ClusterState:
    """Return a cluster state with nodes, and with pods on the nodes of the given names."""
    state = ClusterState()
    for node in nodes:
        state.add_node(node)
    for pod, node_name in pods:
        state.place(state.pod_info(pod), state.nodes.row_of[node_name])
    return state


def make_handle(state: ClusterState, feature_gates: FeatureGates) -> Handle:
    """Return a handle for plugins. Its choices are always the first ones."""
    return Handle(state, feature_gates, choices=PreemptionChoices(lambda count: 0, lambda rows: int(rows[0])))


def make_plugin(kind: type[P], state: ClusterState, arguments: object = None, **gates: bool) -> P:
    """Return a plugin for a cluster state."""
    return kind(arguments, make_handle(state, FeatureGates.from_mapping(gates)))


def _decode(document: dict[str, object]) -> KubernetesObject:
    return default_object(decode(document))
