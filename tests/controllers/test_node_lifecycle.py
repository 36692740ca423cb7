"""Taints for a node's conditions, and the eviction of pods that do not tolerate them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.cluster_fixture import ClusterFixture, node, pod

READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False"}
UNREACHABLE = {"type": "Ready", "status": "Unknown"}


def taints(fixture: ClusterFixture, name: str = "n") -> list[str]:
    return [
        f"{taint.key.removeprefix('node.kubernetes.io/')}:{taint.effect}"
        for taint in fixture.store.nodes[name].spec.taints
    ]


@pytest.mark.parametrize(
    ("state", "want"),
    [
        pytest.param({}, [], id="a node without conditions is healthy"),
        pytest.param({"conditions": [READY]}, [], id="a node that is ready"),
        pytest.param({"unschedulable": True}, ["unschedulable:NoSchedule"], id="a cordoned node"),
        pytest.param({"conditions": [NOT_READY]}, ["not-ready:NoSchedule", "not-ready:NoExecute"], id="not ready"),
        pytest.param(
            {"conditions": [UNREACHABLE]}, ["unreachable:NoSchedule", "unreachable:NoExecute"], id="unreachable"
        ),
        pytest.param(
            {"conditions": [READY, {"type": "DiskPressure", "status": "True"}]}, ["disk-pressure:NoSchedule"], id="disk"
        ),
        pytest.param(
            {"conditions": [READY, {"type": "MemoryPressure", "status": "False"}]}, [], id="no pressure on memory"
        ),
        pytest.param(
            {"taints": [{"key": "mine", "effect": "NoSchedule"}], "unschedulable": True},
            ["mine:NoSchedule", "unschedulable:NoSchedule"],
            id="taints of others stay",
        ),
        pytest.param(
            {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], "conditions": [READY]},
            [],
            id="a taint without reason is removed",
        ),
    ],
)
def test_node_conditions_and_cordons_set_and_remove_taints(state: dict[str, Any], want: list[str]) -> None:
    fixture = ClusterFixture()
    fixture.apply(node("n", **state))
    fixture.settle()
    assert taints(fixture) == want


def test_taints_are_removed_when_the_node_is_ready_again() -> None:
    fixture = ClusterFixture()
    fixture.apply(node("n", conditions=[NOT_READY]))
    fixture.settle()
    fixture.apply(node("n", conditions=[READY]))
    fixture.settle()
    assert taints(fixture) == []


@pytest.mark.parametrize(
    ("tolerations", "leaves"),
    [
        pytest.param([], 310, id="300 seconds by default"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 20}], 30, id="less"
        ),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": -1}], 10, id="none"
        ),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], None, id="forever"),
        pytest.param([{"operator": "Exists"}], None, id="everything, forever"),
    ],
)
def test_pods_are_evicted_from_a_not_ready_node_after_their_toleration_seconds(
    tolerations: list[dict[str, Any]], leaves: int | None
) -> None:
    fixture = ClusterFixture()
    fixture.apply(node("n"), pod("p", nodeName="n", tolerations=tolerations))
    fixture.run_until(10)
    fixture.apply(node("n", conditions=[NOT_READY]))
    fixture.settle()
    if leaves is None:
        fixture.run_until(10_000)
        assert fixture.phases() == {"Running": 1}
        return
    if leaves > 10:
        fixture.run_until(leaves - 0.1)
        assert fixture.phases() == {"Running": 1}
    fixture.run_until(leaves)
    assert fixture.names() == []


def test_a_recovered_node_restarts_the_toleration_time() -> None:
    fixture = ClusterFixture()
    fixture.apply(node("n"), pod("p", nodeName="n"))
    for seconds, condition in ((0, NOT_READY), (200, READY), (250, NOT_READY)):
        fixture.run_until(seconds)
        fixture.apply(node("n", conditions=[condition]))
        fixture.settle()
    fixture.run_until(549)
    assert fixture.phases() == {"Running": 1}
    fixture.run_until(550)
    assert fixture.names() == []


def test_a_no_execute_taint_evicts_existing_and_new_pods_immediately() -> None:
    fixture = ClusterFixture()
    taint = {"key": "mine", "effect": "NoExecute"}
    fixture.apply(node("n"), pod("before", nodeName="n"), node("n", taints=[taint]))
    fixture.settle()
    assert fixture.names() == []
    reason = [
        condition.reason
        for event in fixture.events
        for condition in getattr(getattr(event.new, "status", None), "conditions", ())
        if condition.type == "DisruptionTarget"
    ]
    assert reason == ["DeletionByTaintManager"]
    fixture.apply(
        pod("after", nodeName="n"), pod("guest", nodeName="n", tolerations=[{"key": "mine", "operator": "Exists"}])
    )
    fixture.settle()
    assert fixture.names() == ["guest"]


def test_finished_pods_are_not_evicted() -> None:
    fixture = ClusterFixture()
    fixture.apply(node("n"), pod("p", nodeName="n", status={"phase": "Succeeded"}))
    fixture.apply(node("n", taints=[{"key": "mine", "effect": "NoExecute"}]))
    fixture.settle()
    assert fixture.phases() == {"Succeeded": 1}
