"""The first failure of a pod on each node: refreshed values equal those of a new object and of repeated filters."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan.engine.cycle import first_failures
from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.first_failures import FirstFailures
from bayplan.engine.plan import Plan
from bayplan.engine.queued_pod import uid_of
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.what_if import first_failure_with
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.status import ERROR_BIT
from bayplan.objects.pod import Pod
from bayplan.state.pod_info import PodInfo
from bayplan.state.row_log import RowLog
from tests.engine.plan_histories import cached_plan, change_something
from tests.engine.preemption_worlds import node, preemptor, running, scheduler_of
from tests.engine.test_nominated_pods import nominate

NODES = 12


def asking_pods() -> list[Pod]:
    """Return different pods: three large ones (two equal), and one each with a host port, anti-affinity and a fixed node."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "topology.kubernetes.io/zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    names = {"key": "metadata.name", "operator": "In", "values": ["n01"]}
    fields = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [names]}]}}
    return [
        preemptor("2", 5, "large").obj(),
        preemptor("2", 5, "alike").obj(),
        preemptor("3", 5, "larger").obj(),
        preemptor("1", 9, "ported").host_port(80).obj(),
        preemptor("1", 9, "apart").label(app="a").spec(affinity=affinity).obj(),
        preemptor("1", 5, "pinned").spec(affinity={"nodeAffinity": fields}).obj(),
    ]


def change(random: Random, scheduler: Scheduler, pods: list[Pod], step: int) -> None:
    """Make one random change: add or delete a pod, add or clear a nomination, or change a node."""
    state, kind = scheduler.state, random.random()
    names = sorted(state.nodes.row_of)
    if kind < 0.35:
        builder = running(f"r{step}", random.choice(("1", "2")), random.randrange(8), random.choice(names))
        builder = builder.host_port(random.choice((80, 81))) if random.random() < 0.4 else builder
        scheduler.handle(None, builder.label(app=random.choice("ab")).obj(), step)
    elif kind < 0.5 and state.pods:
        scheduler.handle(scheduler.pods[random.choice(sorted(state.pods))], None, step)
    elif kind < 0.8:
        nominee = replace(random.choice(pods))
        if random.random() < 0.7:
            nominate(scheduler, nominee, random.choice(names))
        else:
            scheduler.queue.nominator.remove(uid_of(nominee))
    elif kind < 0.9:
        name = random.choice(names)
        old = state.nodes.nodes[state.nodes.row_of[name]]
        scheduler.handle(old, node(name, random.choice(("2", "4"))).zone(random.choice("abc")).obj(), step)
    else:
        change_something(random, scheduler, step)


def ready(scheduler: Scheduler, pod: Pod) -> Plan:
    plan = cached_plan(scheduler, pod)
    assert plan.run_pre_filter_plugins(CycleState()).status is None
    plan.refresh_filters()
    return plan


def reported(failures: FirstFailures) -> dict[str, object]:
    return {
        "values": failures.values.tolist(),
        "feasible": failures.feasible.tolist(),
        "examined": failures.examined.tolist(),
        "counts": dict(failures.counts),
        "overrides": dict(failures.overrides),
    }


@pytest.mark.parametrize("seed", range(8))
def test_refreshed_first_failures_equal_a_new_computation(seed: int) -> None:
    random = Random(seed)
    scheduler = scheduler_of(
        [node(f"n{number:02}", random.choice(("2", "4"))).zone(random.choice("abc")) for number in range(NODES)]
    )
    pods, closed = asking_pods(), 0
    for pod in pods:
        scheduler.pods[pod.key] = pod
    for step in range(120):
        change(random, scheduler, pods, step)
        pod = random.choice(random.choice((pods, pods[:2])))
        plan = ready(scheduler, pod)
        nominated = scheduler.nominated_pods(pod)
        got = first_failures(plan, nominated, scheduler.nominated_pods.log)
        fresh = FirstFailures(plan, RowLog())
        fresh.refresh(nominated)
        assert reported(got) == reported(fresh)
        check_against_filters(plan, got, {row: nominated.pods_at(row) for row in nominated.rows})
        closed += int(np.count_nonzero(plan.filtered.feasible & ~got.feasible))
        scheduler.state.check_invariants()
    assert closed > 5


def check_against_filters(plan: Plan, got: FirstFailures, pods: dict[int, list[PodInfo]]) -> None:
    """Compare with the filters' results for each row, with its nominated pods moved there and without them."""
    own = np.where(plan.filtered.examined(), plan.filtered.first_failures(), PASSES)
    want = own.copy()
    for row, failure in ((row, first_failure_with(plan, row, pods[row])) for row in pods):
        if failure != PASSES and plan.filtered.examined()[row]:
            want[row] = failure
    assert got.values.tolist() == want.tolist()
    assert got.overrides == {row: int(want[row]) for row in np.flatnonzero(want != own).tolist()}
    assert got.counts == Counter(want[want != PASSES].tolist())
    assert got.feasible.tolist() == ((want == PASSES) & plan.filtered.examined()).tolist()


def test_two_equal_pods_each_fit_only_on_their_nominated_node() -> None:
    scheduler = scheduler_of([node("n1", "2"), node("n2", "2")])
    pods = [preemptor("2", 5, name).obj() for name in ("one", "two")]
    for pod, name in zip(pods, ("n1", "n2"), strict=True):
        nominate(scheduler, pod, name)
    log, rows = scheduler.nominated_pods.log, scheduler.state.nodes.row_of
    for pod, name in ((pods[0], "n1"), (pods[1], "n2"), (pods[0], "n1")):
        found = first_failures(ready(scheduler, pod), scheduler.nominated_pods(pod), log)
        assert np.flatnonzero(found.feasible).tolist() == [rows[name]]
    assert found.full_passes == 1


@pytest.mark.parametrize(("verdict", "want"), [(1, False), (ERROR_BIT, True)], ids=["a rejection", "an Error"])
def test_failures_with_an_error_are_recognised(verdict: int, want: bool) -> None:
    scheduler = scheduler_of([node("n1", "4")])
    failures = FirstFailures(ready(scheduler, preemptor("1", 5, "p").obj()), RowLog())
    failures.counts = {3 << 16 | verdict: 1}
    assert failures.has_errors() is want


def test_a_changed_row_is_reevaluated_alone() -> None:
    scheduler = scheduler_of([node(f"n{number:02}", "4") for number in range(NODES)])
    pod = preemptor("8").obj()
    for number in range(NODES):
        nominate(scheduler, preemptor("1", 200, f"nominee{number}").obj(), f"n{number:02}")
    plan, log = ready(scheduler, pod), scheduler.nominated_pods.log
    found = first_failures(plan, scheduler.nominated_pods(pod), log)
    asked, passes = found.evaluated_rows, found.full_passes
    assert passes == 1
    scheduler.handle(None, running("r", "1", 0, "n03").obj(), 0)
    assert first_failures(ready(scheduler, pod), scheduler.nominated_pods(pod), log) is found
    assert (found.evaluated_rows - asked, found.full_passes) == (1, 1)
    scheduler.queue.nominator.add(pod, "n05")
    first_failures(ready(scheduler, pod), scheduler.nominated_pods(pod), log)
    assert found.full_passes == 1
    assert found.evaluated_rows - asked <= 4
