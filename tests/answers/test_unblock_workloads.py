"""Suggestions for a workload of whose pods some fit without a change."""

from __future__ import annotations

import pytest

from bayplan import Cluster, RecordLevel, make_node, make_pod
from bayplan.answers.unblock import Unblocking
from bayplan.testing.builders import NodeBuilder, PodBuilder
from bayplan.testing.object_builders import make_budget

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


def test_changes_that_evict_nothing_are_suggested_if_pods_without_gates_preempt() -> None:
    nodes = [NODES[0], make_node("b").capacity(cpu="6", memory="8Gi").unschedulable().obj()]
    low = make_pod("low").req(cpu="1").node("a").owner("ReplicaSet", "low").obj()
    pods = [wanted(name).req(cpu="2").gate("quota").obj() for name in ("p-1", "p-2")]
    found = Cluster([*nodes, low, *pods], record_level=RecordLevel.OFF).unblock("replicaset/app").suggestions
    assert [(each.text, each.placed, each.evicted) for each in found if each.kind != "add node"] == [
        ("remove the scheduling gate quota and uncordon b", 2, []),
        ("remove the scheduling gate quota; it then preempts default/low", 2, ["default/low"]),
    ]


def protected(name: str, node: str) -> PodBuilder:
    return make_pod(name).label(app="low").req(cpu="3").node(node).owner("ReplicaSet", "low")


BUDGET = make_budget("budget", {"app": "low"})
CORDONED = make_node("b").capacity(cpu="4", memory="8Gi").unschedulable()
LARGE = make_node("b").capacity(cpu="7", memory="8Gi").unschedulable()
LOW_AND_OTHER = "default/low and default/other"


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param([CORDONED, protected("low", "a").priority(9)], ("uncordon b", 1), id="no pod preempts"),
        pytest.param(
            [CORDONED, protected("low", "a")],
            ("uncordon b; it then preempts default/low", 2),
            id="a pod preempts also without the change",
        ),
        pytest.param(
            [LARGE, protected("low", "a").priority(9), protected("other", "b")],
            ("uncordon b; it then preempts default/other, and breaks a disruption budget", 2),
            id="a pod preempts only after the change",
        ),
        pytest.param(
            [LARGE, protected("low", "a"), protected("other", "b")],
            (f"uncordon b; it then preempts {LOW_AND_OTHER}, and breaks a disruption budget", 3),
            id="another pod preempts after the change",
        ),
    ],
)
def test_a_change_that_places_a_pod_without_preemption_is_suggested(
    objects: list[NodeBuilder | PodBuilder], want: tuple[str, int]
) -> None:
    pods = [wanted(f"p-{number}") for number in range(3)]
    cluster = Cluster([NODES[0], BUDGET, *(each.obj() for each in (*objects, *pods))], record_level=RecordLevel.OFF)
    found = cluster.unblock("replicaset/app").suggestions
    assert [(each.text, each.placed) for each in found if "uncordon b" in each.text] == [want]


def test_the_verdict_states_the_reasons_of_all_pods() -> None:
    pods = [make_pod(f"p-{number}").owner("ReplicaSet", "app") for number in range(6)]
    large = "it requests 9 cpu, but the largest node offers 4"
    zoned, disk, rack = ({label: "x"} for label in ("zone", "disk", "rack"))
    found = unblocked(pods[0].node_selector(zoned), pods[1].req(cpu="9"), pods[2].req(cpu="9"))
    assert found.verdict.startswith(
        f"3 pending pods, such as default/p-1, fit on no node: {large}; best for it: add a node"
    )
    assert found.verdict.endswith(
        "; other pods wait for a different reason: default/p-0: no node has the label zone=x (nodeSelector)"
    )
    found = unblocked(pods[1], pods[2], pods[3].node_selector(disk), pods[4].node_selector(rack), pods[0])
    assert found.verdict.endswith(
        "; other pods wait for different reasons: default/p-3: no node has the label disk=x (nodeSelector); "
        "default/p-4: no node has the label rack=x (nodeSelector); and 1 more reason"
    )
    assert found.waiting[:2] == ["default/p-1", "default/p-2"]


def test_no_nodes_are_added_for_pods_that_wait_for_a_different_reason() -> None:
    large = [make_pod(f"p-{number}").req(cpu="4").owner("ReplicaSet", "app") for number in range(4)]
    found = unblocked(*large[:3], large[3].node_selector(disk="x"), make_pod("b").req(cpu="4").owner("ReplicaSet", "b"))
    best = next(each for each in found.suggestions if each.kind == "add node")
    assert best.text.endswith(" and add 1 more node of the same shape")
    assert (best.placed, best.waiting) == (2, 3)


def test_the_verdict_states_a_shared_reason_once() -> None:
    found = unblocked(*(make_pod(f"p-{cpu}").req(cpu=cpu, memory="9Gi").owner("ReplicaSet", "app") for cpu in "12"))
    assert "wait for" not in found.verdict
