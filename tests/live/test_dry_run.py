"""A dry run compares its decisions with the cluster's scheduler pod by pod, and then adopts the cluster's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from bayplan.client.reflector import Change
from bayplan.engine.assemble import assemble_scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.live.dry_run import PATIENCE_NS, DryRun, Verdict
from bayplan.objects.pod import Pod, PodCondition
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing import make_node, make_pod


class World:
    """A cluster of nodes for two pods each, whose scheduler follows the test's instructions."""

    def __init__(self, nodes: Sequence[str] = ("a", "b"), cpu: str = "2") -> None:
        self.verdicts: list[Verdict] = []
        scheduler = assemble_scheduler(
            default_configuration(), in_tree_registry(), feature_gates=FeatureGates(), sampling=False
        )
        self.dry_run = DryRun(scheduler, self.verdicts.append)
        self.now_ns = 0
        for name in nodes:
            node = make_node(name).capacity(cpu=cpu, memory="8Gi", pods="10").obj()
            self.dry_run.apply([Change(None, node)], 0)

    def create(self, name: str, cpu: str = "1", scheduler_name: str = "default-scheduler") -> Pod:
        pod = make_pod(name).req(cpu=cpu).obj()
        pod = replace(pod, spec=replace(pod.spec, scheduler_name=scheduler_name))
        self.dry_run.apply([Change(None, pod)], self.now_ns)
        return pod

    def bind(self, pod: Pod, node: str) -> Pod:
        bound = replace(pod, spec=replace(pod.spec, node_name=node))
        self.dry_run.apply([Change(pod, bound)], self.now_ns)
        return bound

    def refuse(self, pod: Pod, message: str) -> Pod:
        condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
        refused = replace(pod, status=replace(pod.status, conditions=(condition,)))
        self.dry_run.apply([Change(pod, refused)], self.now_ns)
        return refused

    def delete(self, pod: Pod) -> None:
        self.dry_run.apply([Change(pod, None)], self.now_ns)

    def turn(self, seconds: float = 1.0) -> list[tuple[str, str, bool]]:
        """Let time pass; return pod, node and agreement of the verdicts so far."""
        self.now_ns += int(seconds * 1e9)
        self.dry_run.compare_due(self.now_ns)
        return [(reported.pod.partition("/")[2], reported.node, reported.agrees) for reported in self.verdicts]


def test_any_tied_best_node_counts_as_agreement() -> None:
    world = World(("a", "b", "c"))
    world.bind(world.create("p"), "b")
    assert world.turn() == [("p", "b", True)]
    [reported] = world.verdicts
    assert (reported.our_node, reported.ties, reported.best) == ("b", 3, ("a", "b", "c"))


def test_a_different_node_is_a_difference_and_is_adopted_for_later_pods() -> None:
    world = World()
    for name, node in (("p", "a"), ("q", "a")):
        world.bind(world.create(name), node)
    assert world.turn(1) == [("p", "a", True)]
    assert world.turn(PATIENCE_NS / 1e9) == [("p", "a", True), ("q", "a", False)]
    assert world.verdicts[1].our_node == "b"
    world.bind(world.create("r"), "b")
    world.bind(world.create("s"), "b")
    assert world.turn(30)[2:] == [("r", "b", True), ("s", "b", True)]
    assert world.dry_run.agreement.summary() == "3 of 4 placed pods went to one of Bayplan's best nodes"
    assert world.dry_run.agreement.differences == {"another node": 1}


def test_bindings_that_arrive_out_of_order_agree() -> None:
    world = World(cpu="3")
    first, second, large = world.create("first"), world.create("second"), world.create("large", cpu="2")
    # The scheduler decided in this order: first on a, large on b, second on a. The binding of large arrived last.
    world.bind(first, "a")
    world.bind(second, "a")
    assert world.turn() == [("first", "a", True)]
    world.bind(large, "b")
    assert [agrees for _, _, agrees in world.turn()] == [True, True, True]


def test_unschedulable_attempts_are_compared_with_their_messages() -> None:
    world = World()
    words = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: "
    words += "2 Preemption is not helpful for scheduling."
    world.refuse(world.create("p", cpu="5"), words)
    world.refuse(world.create("q", cpu="5"), "in other words")
    world.turn()
    assert [(reported.agrees, reported.same_message) for reported in world.verdicts] == [(True, True), (True, False)]
    world.refuse(world.create("r"), words)
    assert world.turn(20)[2:] == [("r", "", False)]
    assert (
        "of 3 attempts without a node, Bayplan agrees with 2, 1 of them with the same message"
        in world.dry_run.agreement.summary()
    )


def test_attempts_from_before_the_start_are_not_compared() -> None:
    world = World()
    condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="of old")
    pod = make_pod("p").req(cpu="1").obj()
    world.dry_run.apply([Change(None, replace(pod, status=replace(pod.status, conditions=(condition,))))], 0)
    assert world.turn() == []


def test_room_freed_by_a_deletion_counts_for_later_pods() -> None:
    world = World(("a",), cpu="1")
    first = world.bind(world.create("first"), "a")
    world.turn()
    world.delete(first)
    world.bind(world.create("second"), "a")
    assert world.turn() == [("first", "a", True), ("second", "a", True)]


def test_a_deleted_bound_pod_is_compared_before_its_removal() -> None:
    world = World()
    one = world.bind(world.create("one"), "a")
    two = world.bind(world.create("two"), "a")
    world.delete(two)
    assert world.turn() == [("one", "a", True), ("two", "a", False)]
    world.delete(one)
    world.bind(world.create("three"), "a")
    assert world.turn()[2:] == [("three", "a", True)]


def test_pods_of_other_schedulers_occupy_room_but_are_not_compared() -> None:
    world = World(("a",), cpu="1")
    world.bind(world.create("theirs", scheduler_name="other"), "a")
    world.refuse(world.create("ours"), "no room")
    assert world.turn() == [("ours", "", True)]


def test_a_pod_deleted_before_its_decision_is_forgotten() -> None:
    world = World()
    world.delete(world.create("p"))
    world.bind(world.create("p"), "a")
    assert world.turn() == [("p", "a", True)]


@pytest.mark.parametrize("count", [40])
def test_many_equal_pods_bound_in_reverse_order_agree(count: int) -> None:
    world = World(tuple(f"n{number:02}" for number in range(count)), cpu="1")
    pods = [world.create(f"p{number:02}") for number in range(count)]
    for number, pod in enumerate(reversed(pods)):
        world.bind(pod, f"n{number:02}")
    assert all(agrees for _, _, agrees in world.turn())
    assert len(world.verdicts) == count
