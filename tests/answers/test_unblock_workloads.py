"""Suggestions for a workload of whose pods some fit without a change."""

from __future__ import annotations

from bayplan import Cluster, RecordLevel, make_node, make_pod
from bayplan.answers.unblock import Unblocking
from bayplan.testing.builders import PodBuilder

NODES = tuple(make_node(name).capacity(cpu="4", memory="8Gi").obj() for name in "ab")
LOW = make_pod("low").req(cpu="3").node("a").owner("ReplicaSet", "low").obj()


def wanted(name: str) -> PodBuilder:
    return make_pod(name).req(cpu="3").priority(5).owner("ReplicaSet", "app")


def unblocked(*pods: PodBuilder) -> Unblocking:
    cluster = Cluster([*NODES, LOW, *(pod.obj() for pod in pods)], record_level=RecordLevel.OFF)
    return cluster.unblock("replicaset/app")


def test_the_suggestion_to_wait_names_the_node_of_the_victim() -> None:
    # Pod p-1 fits on b, so the victim makes room for p-2.
    best = unblocked(wanted("p-1"), wanted("p-2")).suggestions[0]
    assert best.text == "wait: the scheduler preempts default/low on a by itself"
    assert best.node == "a"


def test_gates_of_the_waiting_pod_are_removed_if_another_pod_of_the_workload_has_none() -> None:
    found = unblocked(wanted("p-1"), wanted("p-2").req(cpu="1").gate("quota"))
    assert [each.text for each in found.suggestions] == ["remove the scheduling gate quota"]
    assert found.waiting == ["default/p-2"]
