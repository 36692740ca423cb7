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
from bayplan.objects.pod import Pod, PodCondition, PodResourceClaimStatus
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing import make_node, make_pod
from bayplan.testing.object_builders import make_claim, make_object, make_storage_class


class DryRunFixture:
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

    def create(self, name: str, cpu: str = "1", scheduler_name: str = "default-scheduler", priority: int = 0) -> Pod:
        pod = make_pod(name).req(cpu=cpu).priority(priority).obj()
        pod = replace(pod, spec=replace(pod.spec, scheduler_name=scheduler_name))
        self.dry_run.apply([Change(None, pod)], self.now_ns)
        return pod

    def bind(self, pod: Pod, node: str) -> Pod:
        bound = replace(pod, spec=replace(pod.spec, node_name=node))
        self.dry_run.apply([Change(pod, bound)], self.now_ns)
        return bound

    def refuse(self, pod: Pod, message: str, nominated: str = "") -> Pod:
        condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
        refused = replace(pod, status=replace(pod.status, conditions=(condition,), nominated_node_name=nominated))
        self.dry_run.apply([Change(pod, refused)], self.now_ns)
        return refused

    def nominate(self, pod: Pod, node: str) -> Pod:
        nominated = replace(pod, status=replace(pod.status, nominated_node_name=node))
        self.dry_run.apply([Change(pod, nominated)], self.now_ns)
        return nominated

    def delete(self, pod: Pod) -> None:
        self.dry_run.apply([Change(pod, None)], self.now_ns)

    def turn(self, seconds: float = 1.0) -> list[tuple[str, str, bool]]:
        """Advance the time; return pod, node and agreement of all verdicts so far."""
        self.now_ns += int(seconds * 1e9)
        self.dry_run.compare_due(self.now_ns)
        return [(reported.pod.partition("/")[2], reported.node, reported.agrees) for reported in self.verdicts]


def test_any_tied_best_node_counts_as_agreement() -> None:
    fixture = DryRunFixture(("a", "b", "c"))
    fixture.bind(fixture.create("p"), "b")
    assert fixture.turn() == [("p", "b", True)]
    [reported] = fixture.verdicts
    assert (reported.our_node, reported.ties, reported.best) == ("b", 3, ("a", "b", "c"))


def test_a_different_node_is_a_difference_and_is_adopted_for_later_pods() -> None:
    fixture = DryRunFixture()
    for name, node in (("p", "a"), ("q", "a")):
        fixture.bind(fixture.create(name), node)
    assert fixture.turn(1) == [("p", "a", True)]
    assert fixture.turn(PATIENCE_NS / 1e9) == [("p", "a", True), ("q", "a", False)]
    assert fixture.verdicts[1].our_node == "b"
    fixture.bind(fixture.create("r"), "b")
    fixture.bind(fixture.create("s"), "b")
    assert fixture.turn(30)[2:] == [("r", "b", True), ("s", "b", True)]
    assert fixture.dry_run.agreement.summary() == "3 of 4 placed pods went to one of Bayplan's best nodes"
    assert fixture.dry_run.agreement.differences == {"another node": 1}


def test_bindings_that_arrive_out_of_order_agree() -> None:
    fixture = DryRunFixture(cpu="3")
    first, second, large = fixture.create("first"), fixture.create("second"), fixture.create("large", cpu="2")
    # The scheduler decided in this order: first on a, large on b, second on a. The binding of large arrived last.
    fixture.bind(first, "a")
    fixture.bind(second, "a")
    assert fixture.turn() == [("first", "a", True)]
    fixture.bind(large, "b")
    assert [agrees for _, _, agrees in fixture.turn()] == [True, True, True]


def test_unschedulable_attempts_are_compared_with_their_messages() -> None:
    fixture = DryRunFixture()
    words = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: "
    words += "2 Preemption is not helpful for scheduling."
    fixture.refuse(fixture.create("p", cpu="5"), words)
    fixture.refuse(fixture.create("q", cpu="5"), "in other words")
    fixture.turn()
    assert [(reported.agrees, reported.same_message) for reported in fixture.verdicts] == [(True, True), (True, False)]
    fixture.refuse(fixture.create("r"), words)
    assert fixture.turn(20)[2:] == [("r", "", False)]
    assert (
        "of 3 attempts without a node, Bayplan agrees with 2, 1 of them with the same message"
        in fixture.dry_run.agreement.summary()
    )


def test_attempts_from_before_the_start_are_not_compared() -> None:
    fixture = DryRunFixture()
    condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="of old")
    pod = make_pod("p").req(cpu="1").obj()
    fixture.dry_run.apply([Change(None, replace(pod, status=replace(pod.status, conditions=(condition,))))], 0)
    assert fixture.turn() == []


def test_room_freed_by_a_deletion_counts_for_later_pods() -> None:
    fixture = DryRunFixture(("a",), cpu="1")
    first = fixture.bind(fixture.create("first"), "a")
    fixture.turn()
    fixture.delete(first)
    fixture.bind(fixture.create("second"), "a")
    assert fixture.turn() == [("first", "a", True), ("second", "a", True)]


def test_a_deleted_bound_pod_is_compared_before_its_removal() -> None:
    fixture = DryRunFixture()
    one = fixture.bind(fixture.create("one"), "a")
    two = fixture.bind(fixture.create("two"), "a")
    fixture.delete(two)
    assert fixture.turn() == [("one", "a", True), ("two", "a", False)]
    fixture.delete(one)
    fixture.bind(fixture.create("three"), "a")
    assert fixture.turn()[2:] == [("three", "a", True)]


def test_pods_of_other_schedulers_occupy_room_but_are_not_compared() -> None:
    fixture = DryRunFixture(("a",), cpu="1")
    fixture.bind(fixture.create("theirs", scheduler_name="other"), "a")
    fixture.refuse(fixture.create("ours"), "no room")
    assert fixture.turn() == [("ours", "", True)]


def test_a_pod_deleted_before_its_decision_is_forgotten() -> None:
    fixture = DryRunFixture()
    fixture.delete(fixture.create("p"))
    fixture.bind(fixture.create("p"), "a")
    assert fixture.turn() == [("p", "a", True)]


NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_nominated_pod_takes_room_until_it_is_bound_or_deleted(node: str) -> None:
    fixture = DryRunFixture(cpu="1")
    bound = {name: fixture.bind(fixture.create(f"on-{name}"), name) for name in ("a", "b")}
    fixture.turn()
    high, low = fixture.create("high", priority=9), fixture.create("low")
    high = fixture.refuse(high, NO_ROOM, nominated=node)
    fixture.turn()
    fixture.delete(bound[node])
    fixture.refuse(low, NO_ROOM)
    assert fixture.turn()[2:] == [("high", "", True), ("low", "", True)]
    assert fixture.verdicts[2].same_message
    high = fixture.bind(high, node)
    assert fixture.turn()[4:] == [("high", node, True)]
    fixture.delete(high)
    fixture.bind(low, node)
    assert fixture.turn()[5:] == [("low", node, True)]


def test_a_nominated_pod_that_is_deleted_leaves_its_room() -> None:
    fixture = DryRunFixture(("a",), cpu="1")
    high, low = fixture.create("high", priority=9), fixture.create("low")
    high = fixture.nominate(high, "a")
    low = fixture.refuse(low, NO_ROOM)
    fixture.turn()
    fixture.delete(high)
    fixture.bind(low, "a")
    assert fixture.turn() == [("low", "", True), ("low", "a", True)]


def test_an_update_of_a_preempting_pod_leaves_earlier_decisions() -> None:
    fixture = DryRunFixture(("a",), cpu="3")
    fixture.bind(fixture.create("victim", cpu="2"), "a")
    fixture.turn()
    low = fixture.create("low")
    high = fixture.refuse(fixture.create("high", cpu="2", priority=9), NO_ROOM, nominated="a")
    labeled = replace(high, metadata=replace(high.metadata, labels={"updated": "true"}))
    fixture.dry_run.apply([Change(high, labeled)], fixture.now_ns)
    fixture.bind(low, "a")
    assert fixture.turn()[1:] == [("low", "a", True), ("high", "", True)]


def test_a_bound_pod_with_an_open_refusal_takes_its_room_once() -> None:
    fixture = DryRunFixture(("a",), cpu="2")
    pod = fixture.nominate(fixture.create("p", priority=9), "a")
    pod = fixture.refuse(pod, NO_ROOM, nominated="a")
    fixture.bind(pod, "a")
    fixture.turn()
    fixture.refuse(fixture.create("q"), NO_ROOM)
    assert ("q", "", True) not in fixture.turn()


def test_a_pod_that_was_nominated_before_the_start_takes_room() -> None:
    fixture = DryRunFixture(("a",), cpu="1")
    fixture.nominate(fixture.create("high", priority=9), "a")
    fixture.refuse(fixture.create("low"), "0/1 nodes are available: 1 Insufficient cpu.")
    assert fixture.turn() == [("low", "", True)]


def test_a_pod_that_was_placed_before_a_nomination_agrees() -> None:
    fixture = DryRunFixture(("a",), cpu="3")
    fixture.bind(fixture.create("victim", cpu="2"), "a")
    fixture.turn()
    fixture.bind(fixture.create("low"), "a")
    fixture.refuse(fixture.create("high", cpu="2", priority=9), NO_ROOM, nominated="a")
    assert fixture.turn()[1:] == [("low", "a", True), ("high", "", True)]


def test_a_node_on_which_a_pod_awaits_its_volumes_is_compared() -> None:
    fixture = DryRunFixture()
    fixture.bind(fixture.create("first"), "a")
    fixture.turn()
    claim = make_claim("data").storage_class("late").obj()
    pod = make_pod("p").req(cpu="1").claim("data").obj()
    for item in (make_storage_class("late", provisioner="example.com/disks", wait=True), claim, pod):
        fixture.dry_run.apply([Change(None, item)], 0)
    fixture.bind(fixture.nominate(pod, "a"), "a")
    assert fixture.turn(PATIENCE_NS / 1e9)[1:] == [("p", "a", False)]
    assert fixture.verdicts[1].best == ("b",)


def test_a_node_for_which_an_autoscaler_nominates_a_pod_is_tried_first() -> None:
    fixture = DryRunFixture()
    fixture.bind(fixture.create("first"), "a")
    fixture.turn()
    fixture.bind(fixture.nominate(fixture.create("p"), "a"), "a")
    assert fixture.turn()[1:] == [("p", "a", True)]


def test_a_preempting_pod_leaves_the_nominations_of_other_pods() -> None:
    fixture = DryRunFixture(("a",), cpu="1")
    victim = fixture.bind(fixture.create("low"), "a")
    fixture.turn()
    middle = fixture.refuse(fixture.create("middle", priority=5), "0/1 nodes", nominated="a")
    fixture.turn()
    fixture.refuse(fixture.create("high", priority=9), "0/1 nodes")
    fixture.turn()
    fixture.delete(victim)
    fixture.refuse(fixture.create("other"), "0/1 nodes")
    assert [agrees for _, _, agrees in fixture.turn()] == [True] * 4
    fixture.bind(middle, "a")
    assert fixture.turn()[4:] == [("middle", "a", True)]


def test_pods_that_differ_only_in_their_claims_are_decided_separately() -> None:
    fixture = DryRunFixture(("a",))
    template = make_pod("template").resource_claim("device", template="template").obj()
    pods = []
    for name in ("p", "q"):
        metadata = replace(template.metadata, name=name, uid=name)
        status = replace(
            template.status,
            resource_claim_statuses=(PodResourceClaimStatus(name="device", resource_claim_name=f"{name}-claim"),),
        )
        pods.append(replace(template, metadata=metadata, status=status))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "q", "controller": True}
    claim = make_object(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "q-claim", "namespace": "default", "uid": "claim", "ownerReferences": [owner]},
        }
    )
    for item in (claim, *pods):
        fixture.dry_run.apply([Change(None, item)], 0)
    fixture.refuse(pods[0], "waiting for a claim")
    fixture.bind(pods[1], "a")
    assert fixture.turn() == [("p", "", True), ("q", "a", True)]


@pytest.mark.parametrize("count", [40])
def test_many_equal_pods_bound_in_reverse_order_agree(count: int) -> None:
    fixture = DryRunFixture(tuple(f"n{number:02}" for number in range(count)), cpu="1")
    pods = [fixture.create(f"p{number:02}") for number in range(count)]
    for number, pod in enumerate(reversed(pods)):
        fixture.bind(pod, f"n{number:02}")
    assert all(agrees for _, _, agrees in fixture.turn())
    assert len(fixture.verdicts) == count
