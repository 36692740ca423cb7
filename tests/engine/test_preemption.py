"""Dry runs of preemption compared with a naive version, and their cached results for unchanged rows."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.engine.dry_run import DryRun
from bayplan.engine.plan import Plan
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.plugins.default_preemption import DefaultPreemption
from bayplan.state.arrays import Index
from bayplan.state.row_log import RowLog
from bayplan.testing.builders import PodBuilder, make_node, make_pod
from tests.engine.plan_histories import cached_plan, fresh_plan, plan_results
from tests.engine.preemption_worlds import budget, node, preempt, preemptor, running, scheduler_of
from tests.oracle.preemption import SmallBudget, SmallNode, SmallPod, best_nodes, victims
from tests.plugins.volume_worlds import make_claim, make_volume

APPS = st.sampled_from(("a", "b", ""))


@st.composite
def small_pods(draw: st.DrawFn, name: str) -> SmallPod:
    """Draw a pod with a unique start time, so that no two pods are equally important."""
    app = draw(APPS)
    started = draw(st.integers(0, 3)) * 1_000 + sum(map(ord, name)) % 997
    return SmallPod(name, draw(st.integers(-1, 4)), draw(st.integers(0, 4)), started, {"app": app} if app else {})


@st.composite
def small_clusters(draw: st.DrawFn) -> tuple[list[SmallNode], list[SmallBudget], SmallPod]:
    """Draw nodes with pods, budgets, and a preemptor."""
    nodes = []
    for number in range(draw(st.integers(1, 5))):
        made = SmallNode(f"n{number}", draw(st.integers(1, 6)), draw(st.sampled_from((2, 4, 110))))
        for place in range(draw(st.integers(0, 5))):
            made.running.append(draw(small_pods(f"r{number}-{place}-{'x' * (number * 7 + place)}")))
        for place in range(draw(st.integers(0, 2))):
            made.nominated.append(draw(small_pods(f"nominee{number}-{place}")))
        nodes.append(made)
    budgets = [
        SmallBudget(draw(st.sampled_from(({"app": "a"}, {"app": "b"}, {}))), draw(st.integers(0, 2)))
        for _ in range(draw(st.integers(0, 3)))
    ]
    return nodes, budgets, SmallPod("vip", draw(st.integers(0, 5)), draw(st.integers(0, 5)))


def _built(pod: SmallPod) -> PodBuilder:
    builder = make_pod(pod.name).priority(pod.priority).label(dict(pod.labels))
    return builder.req(cpu=str(pod.cpu)) if pod.cpu else builder


def _scheduler(nodes: list[SmallNode], budgets: list[SmallBudget]) -> Scheduler:
    scheduler = scheduler_of(
        [
            *(node(each.name, str(each.cpu), pods=str(each.pods)) for each in nodes),
            *(budget(each.selects, each.allowed, f"b{number}") for number, each in enumerate(budgets)),
        ]
    )
    for each in nodes:
        for pod in each.running:
            builder = _built(pod).node(each.name)
            assert pod.started is not None
            minutes, seconds = divmod(pod.started, 60)
            builder.document()["status"]["startTime"] = f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"
            scheduler.handle(None, builder.obj(), 0)
        for pod in each.nominated:
            nominee = _built(pod).obj()
            scheduler.pods[nominee.key] = nominee
            scheduler.queue.nominator.add(nominee, each.name)
    return scheduler


def _plan(scheduler: Scheduler, pod: SmallPod) -> Plan:
    typed = _built(pod).obj()
    preempt(scheduler, typed)
    return scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], typed)


def _victims_by_node(scheduler: Scheduler, shortlist: Shortlist) -> dict[str, tuple[list[str], int]]:
    names = scheduler.state.nodes.names
    return {
        names[row] or "": (
            [info.pod.metadata.name for info in shortlist.victims_at(place)],
            shortlist.violations_at(place),
        )
        for place, row in enumerate(shortlist.rows.tolist())
    }


def _searched(scheduler: Scheduler, plan: Plan, pod: Pod, rows: Index, wanted: int) -> Shortlist:
    """Search with a new dry run, which has no cached results."""
    nominated, budgets = scheduler.nominated_pods(pod), DisruptionBudgets(scheduler.state.catalog)
    return DryRun(plan, RowLog()).search(rows, 0, wanted, nominated, budgets)


@settings(max_examples=150, deadline=None)
@given(small_clusters())
def test_a_dry_run_matches_the_naive_search_for_victims(
    world: tuple[list[SmallNode], list[SmallBudget], SmallPod],
) -> None:
    nodes, budgets, pod = world
    scheduler = _scheduler(nodes, budgets)
    plan = _plan(scheduler, pod)
    rows = np.array([scheduler.state.nodes.row_of[each.name] for each in nodes], dtype=np.intp)
    want = {each.name: found for each in nodes if (found := victims(each, pod, budgets)) is not None}
    shortlist = _searched(scheduler, plan, _built(pod).obj(), rows, len(rows))
    assert _victims_by_node(scheduler, shortlist) == want
    if want:
        by_name = {other.name: other for each in nodes for other in each.running}
        candidates = {name: ([by_name[each] for each in gone], count) for name, (gone, count) in want.items()}
        names = [scheduler.state.nodes.names[row] for row in shortlist.rows[shortlist.best()].tolist()]
        assert sorted(name or "" for name in names) == best_nodes(candidates)
    scheduler.state.check_invariants()


@pytest.mark.parametrize("seed", range(8))
def test_cached_dry_runs_match_a_new_search_after_every_change(seed: int) -> None:
    random = Random(seed)
    scheduler = scheduler_of([node(f"n{number:02}", random.choice(("4", "6"))) for number in range(12)])
    plugin = scheduler.profiles["default-scheduler"].plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    kinds = [preemptor(cpu, priority, f"vip{cpu}-{priority}").obj() for cpu in ("4", "5") for priority in (3, 9)]
    for number in range(12):
        scheduler.handle(None, running(f"first{number}", "3", random.randrange(10), f"n{number:02}").obj(), 0)
    small = [preemptor("1", 9, f"small{number}").obj() for number in range(3)]
    compared = 0
    for step in range(80):
        state, kind = scheduler.state, random.random()
        if kind < 0.5:
            name = random.choice(sorted(state.nodes.row_of))
            started = f"2026-01-01T00:00:{random.randrange(60):02}Z"
            made = running(f"r{step}", random.choice(("1", "2")), random.randrange(10), name, started)
            scheduler.handle(None, made.label(app=random.choice("ab")).obj(), step)
        elif kind < 0.55 and state.pods:
            scheduler.handle(scheduler.pods[random.choice(sorted(state.pods))], None, step)
        elif kind < 0.75:
            nominee = random.choice((*kinds, *small))
            scheduler.pods[nominee.key] = nominee
            where = random.choice(("", *sorted(state.nodes.row_of)))
            scheduler.queue.nominator.add(nominee, where)
        elif kind < 0.8:
            scheduler.handle(None, default_object(decode(budget({"app": "a"}, random.randrange(3)))), step)
        elif kind < 0.85:
            name = random.choice(sorted(state.nodes.row_of))
            known = state.nodes.nodes[state.nodes.row_of[name]]
            scheduler.handle(known, node(name, random.choice(("4", "6"))).obj(), step)
        elif state.pods:
            known_pod = scheduler.pods[random.choice(sorted(state.pods))]
            status = replace(known_pod.status, start_time=f"2026-01-02T00:00:{random.randrange(60):02}Z")
            scheduler.handle(known_pod, replace(known_pod, status=status), step)
        pod = random.choice(kinds)
        found = preempt(scheduler, pod)
        if found.result.diagnosis is None:
            continue
        rows = plugin.evaluator.potential_nodes(found.result.diagnosis)
        plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
        want = _searched(scheduler, plan, pod, rows, len(rows))
        scheduler.state.check_invariants()
        compared += bool(want)
        assert found.candidates == {
            scheduler.state.nodes.names[row] or "": tuple(info.key for info in want.victims_at(place))
            for place, row in enumerate(want.rows.tolist())
        }
    assert compared > 5


def test_preemption_prefers_victims_that_have_not_started() -> None:
    check_start_time("2026-01-01T00:00:00Z")


@pytest.mark.parametrize("start_time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_start_times_may_be_far_away(start_time: str) -> None:
    check_start_time(start_time)


def check_start_time(start_time: str) -> None:
    """Check that preemption chooses another victim once one has started at a time."""
    scheduler = scheduler_of([node("n1", "2"), running("a", "1"), running("b", "1")])
    assert preempt(scheduler, preemptor("1").obj()).candidates == {"n1": ("default/b",)}
    pod = scheduler.pods["default/b"]
    status = replace(pod.status, start_time=start_time)
    scheduler.handle(pod, replace(pod, status=status), 0)
    assert preempt(scheduler, preemptor("1").obj()).candidates == {"n1": ("default/a",)}


def test_preemption_honours_budgets_added_after_the_previous_search() -> None:
    scheduler = scheduler_of([node("n1", "2"), running("a", "1").label(app="a"), running("b", "1").label(app="b")])
    assert preempt(scheduler, preemptor("1").obj()).candidates == {"n1": ("default/b",)}
    scheduler.handle(None, default_object(decode(budget({"app": "b"}, 0))), 0)
    assert preempt(scheduler, preemptor("1").obj()).candidates == {"n1": ("default/a",)}


def test_evicting_a_victim_removes_its_anti_affinity() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "vip"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    scheduler = scheduler_of([node("n1"), running("shy", "1").spec(affinity=affinity), running("other", "1")])
    assert preempt(scheduler, preemptor("1").label(app="vip").obj()).candidates == {"n1": ("default/shy",)}


def test_a_victim_becomes_useful_when_a_pod_on_another_node_of_its_zone_leaves() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "topology.kubernetes.io/zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    low, high = running("low", "1").label(app="a"), running("high", "1", 500, "n2").label(app="a")
    scheduler = scheduler_of([node("n1").zone("a"), node("n2").zone("a"), low, high])
    vip = preemptor("1").label(app="vip").spec(affinity=affinity).obj()
    assert preempt(scheduler, vip).candidates == {}
    scheduler.handle(scheduler.pods["default/high"], None, 0)
    assert preempt(scheduler, vip).candidates == {"n1": ("default/low",)}


def test_a_search_for_victims_restores_the_filter_results() -> None:
    claim = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
    scheduler = scheduler_of([node("n1", "2")])
    for item in (make_volume("c"), make_claim("c", volume="c", modes=("ReadWriteOncePod",))):
        scheduler.handle(None, item, 0)
    scheduler.handle(None, running("user", "1").spec(**claim).obj(), 0)
    scheduler.handle(None, running("other", "1").obj(), 0)
    vip = preemptor("1").spec(**claim).obj()
    assert preempt(scheduler, vip).candidates == {"n1": ("default/user",)}
    parts = cached_plan(scheduler, vip).filtered.results
    assert [part.filter_rule.filter(0) for part in parts] == [int(part.codes[0]) for part in parts]


def test_a_nominated_pod_is_counted_once_in_a_dry_run() -> None:
    scheduler = scheduler_of([node("n1", "4"), running("a", "1"), running("b", "1")])
    nominee = preemptor("1", 200, "nominee").obj()
    scheduler.pods[nominee.key] = nominee
    scheduler.queue.nominator.add(nominee, "n1")
    assert preempt(scheduler, preemptor("2").obj()).candidates == {"n1": ("default/b",)}


def test_unchanged_rows_are_not_dry_run_again() -> None:
    names = [f"n{number}" for number in range(9)]
    scheduler = scheduler_of(
        [*(node(name, "2") for name in names), *(running(f"r-{name}", "2", 0, name) for name in names)]
    )
    preempt(scheduler, preemptor("1").obj())
    dry_run = cached_plan(scheduler, preemptor("1").obj()).dry_run
    assert isinstance(dry_run, DryRun)
    assert (dry_run.evaluated_rows, dry_run.known_rows) == (9, 0)
    scheduler.handle(None, running("more", "1", 1, "n4").obj(), 0)
    preempt(scheduler, preemptor("1").obj())
    assert (dry_run.evaluated_rows, dry_run.known_rows) == (10, 8)
    preempt(scheduler, preemptor("1").obj())
    assert (dry_run.evaluated_rows, dry_run.known_rows) == (10, 17)


@pytest.mark.parametrize(
    ("lowest", "runs"),
    [
        pytest.param(99, True, id="a pod of lower priority runs"),
        pytest.param(100, False, id="all pods have at least the preemptor's priority"),
    ],
)
def test_rows_are_examined_only_if_some_pod_has_a_lower_priority(lowest: int, runs: bool) -> None:
    scheduler = scheduler_of(
        [node("n1", "2"), node("n2", "2"), running("a", "1", 200), running("b", "1", lowest, "n2")]
    )
    found = preempt(scheduler, preemptor("2").obj())
    assert isinstance(cached_plan(scheduler, preemptor("2").obj()).dry_run, DryRun) == runs
    assert found.candidates == ({"n2": ("default/b",)} if runs else {})


def test_only_unfinished_pods_on_nodes_have_a_lower_priority() -> None:
    scheduler = scheduler_of([node("n1", "9"), *(running(name, "1", prio) for name, prio in (("a", -5), ("b", 7)))])
    state, found = scheduler.state, list[list[bool]]()

    def note() -> None:
        found.append([state.has_pods_below(priority) for priority in (-5, -4, 7, 8)])

    note()
    low = scheduler.pods["default/a"]
    scheduler.handle(low, replace(low, status=replace(low.status, phase="Succeeded")), 0)
    note()
    assert [state.fork().has_pods_below(priority) for priority in (7, 8)] == [False, True]
    scheduler.handle(scheduler.pods["default/b"], None, 0)
    note()
    assert found == [[False, True, True, True], [False, False, False, True], [False] * 4]
    state.check_invariants()


def crowded_pod(random: Random, name: str, priority: int) -> Pod:
    """Return a pod that may have pod affinity, pod anti-affinity, topology spread constraints and a host port."""
    labels = {"app": random.choice("ab")}
    builder = make_pod(name).label(**labels).req(cpu=random.choice(("0", "500m", "1"))).priority(priority)
    document = builder.document()
    spec = document["spec"]
    selector = {"matchLabels": {"app": random.choice("ab")}}
    keys = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
    for kind, chance in (("podAffinity", 0.3), ("podAntiAffinity", 0.4)):
        if random.random() < chance:
            term = {"topologyKey": random.choice(keys), "labelSelector": selector}
            spec.setdefault("affinity", {})[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if random.random() < 0.5:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": random.choice((1, 2)),
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
                "minDomains": random.choice((1, 3)),
            }
            for key in keys
            if random.random() < 0.6
        ]
    if random.random() < 0.4:
        port = {"containerPort": 80, "hostPort": random.choice((80, 81)), "protocol": "TCP"}
        if random.random() < 0.3:
            port["hostIP"] = "10.0.0.1"
        spec["containers"][0]["ports"] = [port]
    return builder.obj()


@pytest.mark.parametrize("seed", range(10))
def test_dry_runs_of_counting_rules_match_a_cluster_without_the_victims(seed: int) -> None:
    random = Random(seed)
    names = [f"n{number:02}" for number in range(random.choice((8, 14)))]
    made = [node(name, random.choice(("1", "2", "4"))).zone(random.choice("abc")) for name in names]
    scheduler = scheduler_of(made if random.random() < 0.7 else [*made, make_node("bare").capacity(cpu="4")])
    names = sorted(scheduler.state.nodes.row_of)
    checked = 0
    for step in range(60):
        pod = crowded_pod(random, f"r{step}", random.randrange(4))
        status = replace(pod.status, start_time=f"2026-01-01T00:00:{step:02}Z")
        bound = replace(pod, status=status, spec=replace(pod.spec, node_name=random.choice(names)))
        scheduler.handle(None, bound, step)
        vip = crowded_pod(random, f"vip{step}", random.choice((3, 9)))
        preempt(scheduler, vip)
        plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], vip)
        if plan.pre.status is not None:
            continue
        state, rows = scheduler.state, np.flatnonzero(scheduler.state.nodes.alive)
        found = _searched(scheduler, plan, vip, rows, len(rows))
        state.check_invariants()
        for place, row in enumerate(found.rows.tolist()):
            with state.trial():
                for info in found.victims_at(place):
                    state.remove_pod(info.key)
                # Without the victims, a new plan's filters accept the node.
                assert plan_results(fresh_plan(scheduler, vip)).get("rejected") or row in feasible_of(scheduler, vip)
            checked += 1
    assert checked > 20


def feasible_of(scheduler: Scheduler, pod: Pod) -> list[int]:
    """Return the rows on which a pod fits, by a new plan."""
    found = plan_results(fresh_plan(scheduler, pod))["feasible"]
    assert isinstance(found, list)
    return found


def test_preemption_dry_runs_nodes_with_a_shared_host_port() -> None:
    def with_port(name: str, on: str, priority: int) -> Pod:
        builder = make_pod(name).priority(priority).req(cpu="100m").host_port(80)
        return (builder.node(on) if on else builder).obj()

    names = [f"n{number}" for number in range(9)]
    scheduler = scheduler_of([node(name) for name in names])
    for name in names:
        scheduler.handle(None, with_port(f"first-{name}", name, 1), 0)
    scheduler.handle(None, with_port("second", "n4", 50), 0)
    # When one of the two pods is removed, the port of n4 counts as free, although the other pod still uses it.
    assert preempt(scheduler, with_port("vip", "", 9)).candidates["n4"] == ("default/first-n4",)


def test_a_dry_run_preserves_the_order_of_pods_on_a_node() -> None:
    scheduler = scheduler_of([node("n1"), *(running(name, "1") for name in "abcd")])
    before = list(scheduler.state.pods_on[0])
    found = preempt(scheduler, preemptor("1").obj())
    # With equal priority and start time, the pod that was added last is the last candidate for reprieve.
    assert found.candidates == {"n1": ("default/d",)}
    assert list(scheduler.state.pods_on[0]) == before


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "want"),
    [
        pytest.param(10, 100, 50, 50, id="a small cluster is looked at as a whole"),
        pytest.param(10, 100, 5000, 500, id="a share of a large one"),
        pytest.param(10, 100, 500, 100, id="at least the absolute number"),
        pytest.param(0, 1, 7, 1, id="one is enough"),
        pytest.param(50, 1, 7, 3, id="shares are cut off"),
    ],
)
def test_the_number_of_candidates_depends_on_percentage_and_minimum(
    percentage: int, absolute: int, nodes: int, want: int
) -> None:
    arguments = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]}
    scheduler = scheduler_of([], config={"profiles": [profile]})
    plugin = scheduler.profiles["default-scheduler"].plugins["DefaultPreemption"]
    evaluator = getattr(plugin, "evaluator")  # noqa: B009 - the profile knows plugins by their base class only.
    assert evaluator.number_of_candidates(nodes) == want
