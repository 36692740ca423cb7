"""Trials search for victims only if there may be any; resources of victims are free, and added nodes have devices."""

from __future__ import annotations

import pytest

from bayplan import make_pod
from bayplan.answers.node_addition import nodes_to_add
from bayplan.answers.node_shapes import parse_shape
from bayplan.testing.builders import PodBuilder
from tests.answers.clusters import cluster_of, device_objects, node, running, waiting


@pytest.mark.parametrize(
    ("priority", "searched"),
    [
        pytest.param(0, False, id="all pods are equally important"),
        pytest.param(-1, True, id="a running pod is less important"),
    ],
)
def test_a_trial_searches_for_victims_only_if_pods_of_lower_priority_exist(priority: int, searched: bool) -> None:
    kept = running("web-1", "a", cpu="1", priority=priority).obj()
    cluster = cluster_of(node("a"), kept, waiting("big", cpu="8"))
    with cluster.trial(preempts=True) as trial:
        trial.put(cluster.waiting["default/big"])
        trial.settle()
        message = trial.messages["default/big"]
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert ("preemption: " in message) is searched


def test_a_pod_placed_in_the_trial_can_be_evicted() -> None:
    high = running("high", "a", cpu="4", priority=5).obj()
    cluster = cluster_of(node("a"), high)
    with cluster.trial(preempts=True) as trial:
        trial.remove_pod("default/high")
        low, top = waiting("low", cpu="4"), running("top", "", cpu="4", priority=9).obj()
        trial.put(low)
        trial.settle()
        assert trial.placed == {"default/low": "a"}
        trial.put(top)
        trial.settle()
        assert trial.placed == {"default/top": "a"}
    assert [each.pod for each in trial.evictions] == ["default/low"]


HOLDER = (
    make_pod("holder")
    .uid("uid-holder")
    .node("a")
    .resource_claim("gpu", claim="held")
    .owner("ReplicaSet", "w")
    .priority(1)
)
WANTS_A_DEVICE = make_pod("x").resource_claim("gpu", claim="wanted").priority(9).obj()


def test_evicting_a_victim_frees_its_devices() -> None:
    important = running("top", "", cpu="3", priority=9).obj()
    cluster = cluster_of(node("a"), *device_objects(), HOLDER.req(cpu="3").obj())
    with cluster.trial(preempts=True) as trial:
        trial.add_all((important, WANTS_A_DEVICE))
        trial.settle()
        assert trial.placed == {"default/top": "a", "default/x": "a"}
    assert [each.pod for each in trial.evictions] == ["default/holder"]


def test_a_new_node_has_the_devices_of_its_model() -> None:
    cluster = cluster_of(node("a"), *device_objects(), HOLDER.obj(), WANTS_A_DEVICE)
    answer = nodes_to_add(cluster, [parse_shape("like=a", cluster.state)])
    assert [(each.pod, each.node) for each in answer.pods] == [("default/x", "added-1")]


def test_a_trial_leaves_no_allocated_claims_behind() -> None:
    cluster = cluster_of(node("a"), *device_objects(), HOLDER.obj(), WANTS_A_DEVICE)
    for _ in range(2):
        with cluster.trial() as trial:
            trial.remove_pod("default/holder")
            assert trial.place([WANTS_A_DEVICE]) == "a"
    # The pod asks for a device of its own, which the other one still has.
    with cluster.trial() as trial:
        assert not trial.place([WANTS_A_DEVICE])
        assert "cannot allocate all claims" in trial.messages[WANTS_A_DEVICE.key]


def test_a_trial_restores_the_order_of_pods() -> None:
    cluster = cluster_of(node("a"), *(running(f"web-{number}", "a").obj() for number in range(3)))
    before = list(cluster.state.pods)
    with cluster.trial() as trial:
        trial.remove_pod("default/web-0")
        trial.remove_pod("default/web-1")
        trial.put(running("new", "a").obj())
    assert list(cluster.state.pods) == before
    assert list(cluster.state.pods_on[0]) == before


def test_pods_are_retried_when_another_pod_of_their_spread_constraint_gets_a_node() -> None:
    pods = [running(f"x-{number}", "ab"[number], owner="x", priority=9) for number in range(2)]
    pending = [make_pod(f"x-{number}").label(app="x").req(cpu="3") for number in (2, 3)]
    spread = [each.spread({"app": "x"}, "hostname").priority(9).obj() for each in pending]
    full = running("low", "c", cpu="4", owner="low")
    cluster = cluster_of(node("a"), node("b"), node("c"), *(each.obj() for each in (*pods, full)))
    with cluster.trial() as trial:
        result = trial.attempt(spread, preempts=True)
    # The first pod can only go to node c, by preemption; the second one fits only after that.
    assert [bool(each.node) for each in result.placed] == [True, True]
    assert result.victims == ["default/low"]


@pytest.mark.parametrize("preempts", [pytest.param(False, id="by a decision"), pytest.param(True, id="by an attempt")])
def test_cleared_nominations_are_restored(preempts: bool) -> None:
    low = running("low", "a", cpu="4", priority=-5).obj()
    nominated = make_pod("next").req(cpu="1").nominated("a").priority(1).obj()
    top = make_pod("top").req(cpu="4").priority(9).obj()
    with cluster_of(node("a"), low, nominated).trial() as trial:
        nominator = trial.scheduler.queue.nominator
        before = dict(nominator.on_node("a"))
        assert list(before.values()) == ["default/next"]
        if preempts:
            assert trial.attempt([top], preempts=True).victims == ["default/low"]
        else:
            assert trial.decide(top) is not None
        assert dict(nominator.on_node("a")) == before
        # The nominated pod is not in the queue, or later attempts would place it.
        assert trial.scheduler.queue.get("default/next") is None


def test_a_scheduler_without_some_plugins_counts_the_current_nominations() -> None:
    nominated = make_pod("next").req(cpu="4").nominated("a").priority(9).obj()
    small = make_pod("small").req(cpu="2").obj()

    def node_of_small() -> list[str]:
        decisions = [trial.decide(small), trial.decide(small, {"ImageLocality"}), trial.decide(small, {"NodeAffinity"})]
        return [each.record.node for each in decisions if each is not None]

    with cluster_of(node("a"), running("low", "a", cpu="4", priority=0).obj(), nominated).trial() as trial:
        with trial.after([]):
            trial.remove_pod("default/low")
            assert node_of_small() == [""] * 3
            with trial.undone():
                trial.remove_pod("default/next")
                assert node_of_small() == ["a"] * 3
            assert node_of_small() == [""] * 3
            trial.place([nominated])
            trial.remove_pod("default/next")
            assert node_of_small() == ["a"] * 3
        trial.remove_pod("default/low")
        assert node_of_small() == [""] * 3
        assert trial.others_made == 2


def test_a_removed_nominated_pod_counts_again_after_the_removal_is_undone() -> None:
    nominated = make_pod("next").req(cpu="3").nominated("a").priority(1).obj()
    small = make_pod("small").req(cpu="2").obj()
    with cluster_of(node("a"), nominated).trial() as trial:
        assert not trial.attempt([small]).fits
        with trial.undone():
            assert trial.remove_pod("default/next") is not None
            assert trial.attempt([small]).fits
            # Replacing it, as a restart does, must not fail.
            assert trial.place([nominated]) == "a"
        assert not trial.attempt([small]).fits
        assert list(trial.nominated) == ["default/next"]
        assert trial.scheduler.queue.get("default/next") is None


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("next").scheduler("volcano"), id="by another scheduler"),
        pytest.param(make_pod("next").gate("wait"), id="but has a scheduling gate"),
    ],
)
def test_a_pod_that_this_scheduler_does_not_nominate_does_not_count(pod: PodBuilder) -> None:
    with cluster_of(node("a"), pod.req(cpu="3").nominated("a").priority(1).obj()).trial() as trial:
        assert trial.attempt([make_pod("small").req(cpu="2").obj()]).fits
