"""A node as authors of plugins see it."""

from __future__ import annotations

from bayplan.framework.node_info import NodeInfo
from bayplan.state.cluster_state import ClusterState
from bayplan.testing import make_node, make_pod

GPU = "example.com/gpu"


def make() -> tuple[ClusterState, NodeInfo]:
    state = ClusterState()
    state.add_node(make_node("other").capacity(cpu="9").obj())
    node = make_node("n").capacity({GPU: "2"}, cpu="3500m", memory="1Gi", pods="7").label(team="red").taint("k", "v")
    return state, NodeInfo(state, state.add_node(node.obj()))


def test_node_info_returns_name_labels_taints_and_node() -> None:
    state, info = make()
    assert info.name == "n"
    assert info.labels == {"kubernetes.io/hostname": "n", "team": "red"}
    assert [(taint.key, taint.value, taint.effect) for taint in info.taints] == [("k", "v", "NoSchedule")]
    assert info.node is state.nodes.nodes[1]


def test_allocatable_uses_milli_cpu_and_native_units() -> None:
    _, info = make()
    found = {name: info.allocatable(name) for name in ("cpu", "memory", "pods", GPU, "unheard.of/x")}
    assert found == {"cpu": 3500, "memory": 1 << 30, "pods": 7, GPU: 2, "unheard.of/x": 0}


def test_node_info_follows_placed_pods() -> None:
    state, info = make()
    assert (info.pods, info.requested("cpu"), info.requested("pods"), info.free("cpu")) == ([], 0, 0, 3500)
    pod = make_pod("p").req({GPU: "1"}, cpu="500m").obj()
    state.place(state.pod_info(pod), 1)
    assert info.pods == [pod]
    assert (info.requested("cpu"), info.requested(GPU), info.requested("pods")) == (500, 1, 1)
    assert (info.free("cpu"), info.free(GPU), info.free("pods"), info.free("memory")) == (3000, 1, 6, 1 << 30)
    assert info.requested("unheard.of/x") == info.free("unheard.of/x") == 0
