"""Nominated pods that count in filtering, and the cache of them, which follows the nominator."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan.engine.cycle import schedule_pod
from bayplan.engine.queued_pod import uid_of
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import first_by_name
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.pod import Pod
from bayplan.testing.builders import make_pod
from tests.engine.preemption_worlds import node, preemptor, scheduler_of
from tests.plugins.volume_worlds import make_claim, make_csi_node, make_volume, using, with_volumes


def nominate(scheduler: Scheduler, pod: Pod, node_name: str) -> None:
    scheduler.pods[pod.key] = pod
    scheduler.queue.nominator.add(pod, node_name)


def feasible(scheduler: Scheduler, pod: Pod) -> list[str]:
    plan = scheduler.plans.plan_for(scheduler.profiles[pod.spec.scheduler_name], pod)
    result = schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, first_by_name)
    names = scheduler.state.nodes.names
    if result.chose_nominated_node_alone:
        return [names[result.row] or ""]
    rows = set(np.flatnonzero(plan.filtered.feasible).tolist())
    return sorted(names[row] or "" for row in rows - set(result.nominated_failures))


@pytest.mark.parametrize(
    ("priority", "want"),
    [
        pytest.param(99, ["n1", "n2"], id="a nominee of lower priority is overlooked"),
        pytest.param(100, ["n2"], id="one of equal priority counts"),
        pytest.param(101, ["n2"], id="one of higher priority counts"),
    ],
)
def test_rule_10_nominated_pods_of_equal_or_higher_priority_count(priority: int, want: list[str]) -> None:
    scheduler = scheduler_of([node("n1"), node("n2")])
    nominate(scheduler, preemptor("3", priority, "nominee").obj(), "n1")
    assert feasible(scheduler, preemptor("2").obj()) == want


def test_rule_10_a_nominated_pod_does_not_satisfy_required_affinity() -> None:
    scheduler = scheduler_of([node("n1")])
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nominate(scheduler, preemptor("1", 200, "nominee").label(app="db").obj(), "n1")
    assert feasible(scheduler, preemptor("1").spec(affinity=affinity).obj()) == []


def test_rule_10_anti_affinity_to_a_nominated_pod_counts() -> None:
    scheduler = scheduler_of([node("n1"), node("n2")])
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    nominate(scheduler, preemptor("1", 200, "nominee").label(app="db").obj(), "n1")
    assert feasible(scheduler, preemptor("1").spec(affinity=affinity).obj()) == ["n2"]


def test_a_pods_own_nomination_is_ignored() -> None:
    scheduler = scheduler_of([node("n1"), node("n2")])
    pod = preemptor("3").obj()
    nominate(scheduler, pod, "n1")
    assert feasible(scheduler, pod) == ["n1", "n2"]
    nominate(scheduler, preemptor("2", 100, "peer").obj(), "n1")
    assert feasible(scheduler, pod) == ["n2"]


def test_rule_9_the_nominated_node_is_tried_first_and_alone() -> None:
    scheduler = scheduler_of([node("n1", "8"), node("n2", "3")])
    assert feasible(scheduler, preemptor("2").nominated("n2").obj()) == ["n2"]
    assert feasible(scheduler, preemptor("4").nominated("n2").obj()) == ["n1"]
    assert feasible(scheduler, preemptor("2").nominated("gone").obj()) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("nominee", "want"),
    [
        pytest.param(preemptor("3", name="nominee"), ["n2"], id="a pod of this scheduler counts"),
        pytest.param(preemptor("3", name="nominee").scheduler("other"), ["n1", "n2"], id="one of another does not"),
        pytest.param(preemptor("3", name="nominee").gate("later"), ["n1", "n2"], id="a gated pod does not count"),
        pytest.param(preemptor("3", name="nominee").node("n2"), ["n1", "n2"], id="a pod with a node does not count"),
    ],
)
def test_rule_11_only_ungated_pods_of_this_scheduler_count_as_nominated(nominee: object, want: list[str]) -> None:
    scheduler = scheduler_of([node("n1"), node("n2", "8")])
    assert isinstance(nominee, type(make_pod("x")))
    scheduler.handle(None, nominee.nominated("n1").obj(), 0)
    assert feasible(scheduler, preemptor("2").obj()) == want


@pytest.mark.parametrize("seed", range(6))
def test_cached_nominated_requests_follow_nominations(seed: int) -> None:
    random = Random(seed)
    scheduler = scheduler_of([node(f"n{number}") for number in range(5)])
    pods = [preemptor(str(random.randint(1, 3)), random.choice((1, 5, 9)), f"p{number}").obj() for number in range(8)]
    for pod in pods:
        scheduler.pods[pod.key] = pod
    for _ in range(60):
        pod = random.choice(pods)
        if random.random() < 0.6:
            nominate(scheduler, pod, random.choice(("", "gone", "n0", "n1", "n2", "n3", "n4")))
        else:
            scheduler.queue.nominator.remove(uid_of(pod))
        if random.random() < 0.1:
            name = random.choice(sorted(scheduler.state.nodes.row_of))
            known = scheduler.state.nodes.nodes[scheduler.state.nodes.row_of[name]]
            scheduler.handle(known, None, 0)
            scheduler.handle(None, known, 0)
        asking = random.choice(pods)
        nominated = scheduler.nominated_pods(asking)
        want: dict[int, list[str]] = {}
        for name, row in scheduler.state.nodes.row_of.items():
            keys = [*scheduler.queue.nominator.on_node(name).values()]
            counting = [
                key
                for key in keys
                if key != asking.key and (scheduler.pods[key].spec.priority or 0) >= (asking.spec.priority or 0)
            ]
            if counting:
                want[row] = counting
        assert nominated.rows == sorted(want)
        assert {row: [info.key for info in nominated.pods_at(row)] for row in nominated.rows} == want


def test_pod_infos_of_nominated_pods_are_shared_between_preemptors() -> None:
    scheduler = scheduler_of([node(f"n{number}", "2") for number in range(50)])
    for number in range(50):
        nominate(scheduler, preemptor("1", 5, f"nominee{number}").obj(), f"n{number}")
    first = scheduler.nominated_pods(preemptor("1", 5).obj())
    second = scheduler.nominated_pods(preemptor("1", 4, "other").obj())
    assert len(first.rows) == len(second.rows) == 50
    assert all(first.pods_at(row)[0] is second.pods_at(row)[0] for row in first.rows)


EBS = "ebs.csi.aws.com"
DRIVERS = {"limited": EBS, "elsewhere": "csi.b"}
"""Drivers by volume. A node has room for one volume of EBS."""


def test_a_nominated_pod_is_recounted_when_its_claim_binds_to_another_volume() -> None:
    scheduler = scheduler_of([node("n1")])
    known = make_claim("of-nominee", volume="elsewhere")
    for item in (
        make_csi_node("n1", {EBS: 1}, migrated="kubernetes.io/aws-ebs"),
        *(
            make_volume(name, spec={"csi": {"driver": driver, "volumeHandle": name}})
            for name, driver in DRIVERS.items()
        ),
        known,
    ):
        scheduler.handle(None, item, 0)
    nominee, pod = using("of-nominee", name="nominee"), with_volumes({"awsElasticBlockStore": {"volumeID": "own"}})
    nominate(scheduler, replace(nominee, spec=replace(nominee.spec, priority=200)), "n1")
    for _ in "twice":
        assert feasible(scheduler, pod) == ["n1"]
    scheduler.handle(known, make_claim("of-nominee", volume="limited"), 0)
    assert feasible(scheduler, pod) == []
