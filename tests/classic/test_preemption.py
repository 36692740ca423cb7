"""Preemption: eligible pods, candidate nodes, victims, and the choice of a node, criterion by criterion."""

from __future__ import annotations

import pytest

from bayplan.classic.preemption import Victims, pick_one_node_for_preemption
from bayplan.testing.builders import PodBuilder, make_pod
from tests.classic.cycles import Cycle, Item, configured, cycle, cycle_of, node, scheduler_of

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def running(name: str, cpu: str, priority: int = 0, on: str = "n1", started: str = OLD) -> PodBuilder:
    """Return a pod that runs on a node."""
    builder = make_pod(name).req(cpu=cpu).priority(priority).node(on)
    builder.document().setdefault("status", {})["startTime"] = started
    return builder


def vip(cpu: str = "4", priority: int = 1000) -> PodBuilder:
    """Return a preemptor."""
    return make_pod("vip").req(cpu=cpu).priority(priority)


def budget(name: str, allowed: int, **labels: str) -> dict[str, object]:
    """Return a disruption budget."""
    return {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }


def _on(where: str, *pods: PodBuilder) -> list[Item]:
    return [node(where), *(pod.node(where) for pod in pods)]


# The criteria in their order. In each case, all earlier criteria are equal, and the one in its id decides.


@pytest.mark.parametrize(
    ("first", "second", "objects", "want"),
    [
        pytest.param(
            # The victim that violates its budget has the lowest priority: the number of violations counts before
            # priorities.
            [running("a", "4", 1).label(app="a")],
            [running("b", "4", 9)],
            [budget("none", 0, app="a")],
            ["n2"],
            id="fewest violations of budgets",
        ),
        pytest.param(
            # Five victims of priority 1 against one of 2: the highest priority counts before sums and numbers of
            # victims.
            [running(f"a{number}", "800m", 1) for number in range(5)],
            [running("b", "4", 2)],
            [],
            ["n1"],
            id="lowest highest priority",
        ),
        pytest.param(
            # The sums of priorities are 5 + 1 and 5 + 3.
            [running("a1", "2", 5), running("a2", "2", 3)],
            [running("b1", "2", 5), running("b2", "2", 1)],
            [],
            ["n2"],
            id="lowest sum of priorities",
        ),
        pytest.param(
            # Upstream adds 2^31 to each priority before summing. Without this, 5 - 2^30 would be less than 5; so more
            # victims have a larger sum.
            [running("a1", "2", 5), running("a2", "2", -(2**30))],
            [running("b1", "4", 5)],
            [],
            ["n2"],
            id="the sum counts each victim with 2^31",
        ),
        pytest.param(
            [running("a1", "4", 5, started=OLD)],
            [running("b1", "4", 5, started=YOUNG)],
            [],
            ["n2"],
            id="latest of the earliest start times",
        ),
        pytest.param(
            # Only victims with the highest priority count: the early start of the one with priority 1 does not matter.
            [running("a1", "2", 5, started=YOUNG), running("a2", "2", 1, started=OLD)],
            [running("b1", "2", 5, started=OLD), running("b2", "2", 1, started=YOUNG)],
            [],
            ["n1"],
            id="start times of the most important victims",
        ),
        pytest.param(
            [running("a1", "4", 5)],
            [running("b1", "4", 5)],
            [],
            ["n1", "n2"],
            id="equal in everything",
        ),
    ],
)
def test_the_best_candidate_is_chosen_criterion_by_criterion(
    first: list[PodBuilder], second: list[PodBuilder], objects: list[Item], want: list[str]
) -> None:
    found = cycle_of([*_on("n1", *first), *_on("n2", *second), *objects], vip())
    assert sorted(found.candidates()) == ["n1", "n2"]
    assert found.best() == want


def _victims(violations: int, *pods: tuple[int, str]) -> Victims:
    made = [running(f"p{number}", "1", priority, started=started) for number, (priority, started) in enumerate(pods)]
    return Victims(tuple(scheduler_of(_on("n1", *made)).state.pods.values()), violations)


def test_nodes_without_victims_are_chosen_immediately() -> None:
    rows = {0: _victims(0, (0, OLD)), 1: _victims(0), 2: _victims(0)}
    assert pick_one_node_for_preemption(rows) == (1, 2)
    assert pick_one_node_for_preemption({}) == ()


def test_fewer_victims_win_if_the_priority_sums_are_equal() -> None:
    # Besides the first victim, with 2^31 added to each: 0 alone gives 2^31, and so do -1 and 1 - 2^31 together.
    more, fewer = _victims(0, (5, OLD), (-1, OLD), (1 - 2**31, OLD)), _victims(0, (5, OLD), (0, OLD))
    assert pick_one_node_for_preemption({0: more, 1: fewer}) == (1,)


def test_the_first_victim_counts_as_the_highest_priority_victim() -> None:
    # A victim that violates a budget is listed first, whatever its priority, and upstream takes the first for the
    # highest.
    assert pick_one_node_for_preemption({0: _victims(1, (1, OLD), (9, OLD)), 1: _victims(1, (2, OLD))}) == (0,)


# Victims.


def test_less_important_pods_are_victims_first() -> None:
    pods = [running("low", "1", 1), running("mid", "1", 2), running("high", "1", 3), running("higher", "1", 2000)]
    found = cycle_of(_on("n1", *pods), vip("2"))
    assert found.candidates() == {"n1": ["mid", "low"]}


def test_the_more_recently_started_pod_is_the_victim_at_equal_priority() -> None:
    found = cycle_of(_on("n1", running("young", "2", 1, started=YOUNG), running("old", "2", 1, started=OLD)), vip("2"))
    assert found.candidates() == {"n1": ["young"]}


def test_pods_with_an_exhausted_budget_are_spared_first_and_listed_first() -> None:
    pods = [running("kept", "2", 1).label(app="a"), running("goes", "2", 5)]
    found = cycle_of([*_on("n1", *pods), budget("none", 0, app="a")], vip("2"))
    assert found.candidates() == {"n1": ["goes"]}
    all_go = cycle_of([*_on("n1", *pods), budget("none", 0, app="a")], vip("4"))
    assert all_go.candidates() == {"n1": ["kept", "goes"]}
    (victims,) = all_go.preemption().candidates.values()
    assert victims.num_pdb_violations == 1


@pytest.mark.parametrize(
    ("labels", "selects", "allowed", "violations"),
    [
        pytest.param({"app": "a"}, {"app": "a"}, 0, 1, id="used up"),
        pytest.param({"app": "a"}, {"app": "a"}, 1, 0, id="one is allowed, and not counted down"),
        pytest.param({"app": "a"}, {"app": "b"}, 0, 0, id="of others"),
        pytest.param({"app": "a"}, {}, 0, 0, id="an empty selector selects no pod"),
        pytest.param({}, {"app": "a"}, 0, 0, id="a pod without labels has no budget"),
    ],
)
def test_budget_violations_are_counted_per_victim(
    labels: dict[str, str], selects: dict[str, str], allowed: int, violations: int
) -> None:
    pods = [running(name, "2", 1).label(labels) for name in ("a", "b")]
    found = cycle_of([*_on("n1", *pods), budget("b", allowed, **selects)], vip("4"))
    (victims,) = found.preemption().candidates.values()
    assert victims.num_pdb_violations == 2 * violations


def test_pods_of_equal_priority_are_not_victims() -> None:
    assert cycle_of(_on("n1", running("a", "4", 1000)), vip()).candidates() == {}


# Candidate nodes.


def _cleared(found: Cycle) -> bool:
    return found.preemption().clear_own_nomination


def test_the_pods_own_nomination_is_cleared_if_no_eviction_can_help() -> None:
    cordoned = _on("n1", running("a", "4", 1))
    assert isinstance(cordoned[0], type(node()))
    cordoned[0].unschedulable()
    found = cycle_of(cordoned, vip())
    assert found.candidates() == {}
    assert _cleared(found)
    assert found.scheduler.nominations_to_clear(found.pod, "", found.preemption()) == [found.pod]


def test_the_nomination_remains_if_preemption_is_helpful_but_finds_no_victims() -> None:
    found = cycle_of(_on("n1", running("a", "4", 2000)), vip())
    assert found.candidates() == {}
    assert not _cleared(found)


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        pytest.param({"nodeSelector": {"rack": "r"}}, False, id="MatchNodeSelector"),
        pytest.param({"nodeName": "n2"}, False, id="HostName"),
        pytest.param({}, True, id="PodFitsResources"),
    ],
)
def test_unresolvable_failures_prevent_preemption_and_clear_the_nomination(
    change: dict[str, object], helps: bool
) -> None:
    found = cycle_of(_on("n1", running("a", "4", 1)), vip().spec(**change))
    assert bool(found.candidates()) is helps
    assert _cleared(found) is not helps


# Eligible pods.


def _nominated_with(victim: PodBuilder, *, terminating: bool = True) -> Cycle:
    if terminating:
        victim.document()["metadata"]["deletionTimestamp"] = OLD
    return cycle_of(_on("n1", victim, running("b", "2", 1)), vip().nominated("n1"))


def test_a_nominated_pod_waits_for_terminating_victims() -> None:
    assert _nominated_with(running("a", "2", 1)).candidates() == {}
    assert _nominated_with(running("a", "2", 1), terminating=False).candidates() == {"n1": ["a", "b"]}
    # A terminating pod with a higher priority is not a victim.
    assert _nominated_with(running("a", "2", 2000)).candidates() == {}
    assert _cleared(_nominated_with(running("a", "2", 1))) is False


@pytest.mark.parametrize(("gate", "may"), [(False, True), (True, False)])
def test_preemption_policy_never_requires_its_gate(gate: bool, may: bool) -> None:
    configuration = configured(gates={"NonPreemptingPriority": gate})
    found = cycle_of(_on("n1", running("a", "4", 1)), vip().spec(preemptionPolicy="Never"), configuration)
    assert bool(found.candidates()) is may


# Nominations.


def test_nominations_of_lower_priority_on_the_node_are_cleared() -> None:
    scheduler = scheduler_of(_on("n1", running("a", "4", 1)))
    for name, priority in (("lower", 10), ("same", 1000), ("higher", 5000)):
        pod = make_pod(name).priority(priority).nominated("n1").obj()
        scheduler.pods[pod.key] = pod
        scheduler.queue.nominator.add(pod, "n1")
    found = cycle(scheduler, vip())
    assert found.best() == ["n1"]
    cleared = scheduler.nominations_to_clear(found.pod, "n1", found.preemption())
    assert [pod.metadata.name for pod in cleared] == ["lower"]


def test_dry_runs_count_nominated_pods_of_equal_or_higher_priority() -> None:
    # With the nominated pod counted, evicting one of the two is not enough.
    nominee = make_pod("nominee").req(cpu="2").priority(1000).nominated("n1").obj()
    scheduler = scheduler_of(_on("n1", running("a", "2", 1), running("b", "2", 2)))
    scheduler.pods[nominee.key] = nominee
    scheduler.queue.nominator.add(nominee)
    assert cycle(scheduler, vip("2")).candidates() == {"n1": ["b", "a"]}
    assert cycle(scheduler, make_pod("vvip").req(cpu="2").priority(1001)).candidates() == {"n1": ["a"]}


def test_dry_runs_leave_the_state_unchanged() -> None:
    scheduler = scheduler_of(
        [*_on("n1", running("a", "2", 1), running("b", "2", 2)), *_on("n2", running("c", "4", 5000, "n2"))]
    )
    before = list(scheduler.state.pods_on[0])
    assert cycle(scheduler, vip("3")).candidates() == {"n1": ["b", "a"]}
    assert list(scheduler.state.pods_on[0]) == before
    scheduler.state.check_invariants()
