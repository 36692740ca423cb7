"""Taints for a node's conditions, and the eviction of pods that do not tolerate them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.world import World, node, pod

READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False"}
UNREACHABLE = {"type": "Ready", "status": "Unknown"}


def taints(world: World, name: str = "n") -> list[str]:
    return [
        f"{taint.key.removeprefix('node.kubernetes.io/')}:{taint.effect}"
        for taint in world.store.nodes[name].spec.taints
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
    world = World()
    world.apply(node("n", **state))
    world.settle()
    assert taints(world) == want


def test_taints_are_removed_when_the_node_is_ready_again() -> None:
    world = World()
    world.apply(node("n", conditions=[NOT_READY]))
    world.settle()
    world.apply(node("n", conditions=[READY]))
    world.settle()
    assert taints(world) == []


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
    world = World()
    world.apply(node("n"), pod("p", nodeName="n", tolerations=tolerations))
    world.run_until(10)
    world.apply(node("n", conditions=[NOT_READY]))
    world.settle()
    if leaves is None:
        world.run_until(10_000)
        assert world.phases() == {"Running": 1}
        return
    if leaves > 10:
        world.run_until(leaves - 0.1)
        assert world.phases() == {"Running": 1}
    world.run_until(leaves)
    assert world.names() == []


def test_a_recovered_node_restarts_the_toleration_time() -> None:
    world = World()
    world.apply(node("n"), pod("p", nodeName="n"))
    for seconds, condition in ((0, NOT_READY), (200, READY), (250, NOT_READY)):
        world.run_until(seconds)
        world.apply(node("n", conditions=[condition]))
        world.settle()
    world.run_until(549)
    assert world.phases() == {"Running": 1}
    world.run_until(550)
    assert world.names() == []


def test_a_no_execute_taint_evicts_existing_and_new_pods_immediately() -> None:
    world = World()
    taint = {"key": "mine", "effect": "NoExecute"}
    world.apply(node("n"), pod("before", nodeName="n"), node("n", taints=[taint]))
    world.settle()
    assert world.names() == []
    reason = [
        condition.reason
        for event in world.events
        for condition in getattr(getattr(event.new, "status", None), "conditions", ())
        if condition.type == "DisruptionTarget"
    ]
    assert reason == ["DeletionByTaintManager"]
    world.apply(
        pod("after", nodeName="n"), pod("guest", nodeName="n", tolerations=[{"key": "mine", "operator": "Exists"}])
    )
    world.settle()
    assert world.names() == ["guest"]


def test_finished_pods_are_not_evicted() -> None:
    world = World()
    world.apply(node("n"), pod("p", nodeName="n", status={"phase": "Succeeded"}))
    world.apply(node("n", taints=[{"key": "mine", "effect": "NoExecute"}]))
    world.settle()
    assert world.phases() == {"Succeeded": 1}
