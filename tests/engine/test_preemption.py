"""Dry runs of preemption against a naive version of it, in both ways: node by node, and in lockstep."""

from __future__ import annotations

from functools import partial
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from bayplan.engine.preemption.lockstep import Lockstep, Outcome
from bayplan.engine.preemption.one_row import RowTrial
from bayplan.engine.preemption.victim_table import VictimTable
from bayplan.engine.supposing import FEW_SUPPOSED, supposed_parts
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bayplan.engine.nominator import NominatingInfo, NominatingMode
from bayplan.engine.plan import Plan
from bayplan.engine.preemption import lockstep as lockstep_module
from bayplan.engine.preemption.search import search_in_lockstep, search_node_by_node
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from bayplan.plugins.default_preemption import DefaultPreemption
from bayplan.state.arrays import SMALL, Index
from bayplan.testing.builders import PodBuilder, make_node, make_pod
from tests.engine.preemption_worlds import budget, node, preempt, preemptor, running, scheduler_of
from tests.oracle.preemption import SmallBudget, SmallNode, SmallPod, best_nodes, victims

APPS = st.sampled_from(("a", "b", ""))


@st.composite
def small_pods(draw: st.DrawFn, name: str) -> SmallPod:
    """Draw a pod with a start time of its own, so that importance leaves nothing open."""
    app = draw(APPS)
    started = draw(st.integers(0, 3)) * 1_000 + sum(map(ord, name)) % 997
    return SmallPod(name, draw(st.integers(-1, 4)), draw(st.integers(0, 4)), started, {"app": app} if app else {})


@st.composite
def small_clusters(draw: st.DrawFn) -> tuple[list[SmallNode], list[SmallBudget], SmallPod]:
    """Draw nodes with pods, budgets and a pod that wants room."""
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
            scheduler.queue.nominate(nominee, NominatingInfo(NominatingMode.OVERRIDE, each.name))
    return scheduler


def _plan(scheduler: Scheduler, pod: SmallPod) -> Plan:
    typed = _built(pod).obj()
    preempt(scheduler, typed)
    return scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], typed)


def _told(scheduler: Scheduler, shortlist: Shortlist) -> dict[str, tuple[list[str], int]]:
    names = scheduler.state.nodes.names
    return {
        names[row] or "": (
            [info.pod.metadata.name for info in shortlist.victims_at(place)],
            int(shortlist.violations[place]),
        )
        for place, row in enumerate(shortlist.rows.tolist())
    }


def _in_lockstep(
    scheduler: Scheduler, plan: Plan, pod: SmallPod, rows: Index, wanted: int, few: int = FEW_SUPPOSED
) -> Shortlist:
    """Search in lockstep; up to so many rows are played through on plain numbers."""
    parts = supposed_parts(plan)
    assert parts is not None
    table = VictimTable(scheduler.state)
    assert table.refresh()
    crowd = scheduler.nominated_pods(_built(pod).obj())
    lockstep = Lockstep(plan, parts, table, crowd, DisruptionBudgets(scheduler.state.catalog))
    with patch.object(lockstep_module, "FEW_SUPPOSED", few):
        return search_in_lockstep(plan, lambda block: lockstep.run(block, pod.priority), rows, wanted)


def _node_by_node(scheduler: Scheduler, plan: Plan, pod: SmallPod, rows: Index, wanted: int) -> Shortlist:
    crowd = scheduler.nominated_pods(_built(pod).obj())
    budgets = DisruptionBudgets(scheduler.state.catalog)
    return search_node_by_node(plan, rows, pod.priority, crowd, budgets, wanted)


@settings(max_examples=150, deadline=None)
@given(small_clusters())
def test_both_ways_of_dry_running_find_what_the_naive_one_finds(
    world: tuple[list[SmallNode], list[SmallBudget], SmallPod],
) -> None:
    nodes, budgets, pod = world
    scheduler = _scheduler(nodes, budgets)
    plan = _plan(scheduler, pod)
    rows = np.array([scheduler.state.nodes.row_of[each.name] for each in nodes], dtype=np.intp)
    want = {each.name: found for each in nodes if (found := victims(each, pod, budgets)) is not None}
    by_node = _node_by_node(scheduler, plan, pod, rows, len(rows))
    assert _told(scheduler, by_node) == want
    stepped = _in_lockstep(scheduler, plan, pod, rows, len(rows), few=0)
    one_by_one = _in_lockstep(scheduler, plan, pod, rows, len(rows), few=len(rows))
    assert _told(scheduler, stepped) == want
    assert _told(scheduler, one_by_one) == want
    if want:
        by_name = {other.name: other for each in nodes for other in each.running}
        candidates = {name: ([by_name[each] for each in gone], count) for name, (gone, count) in want.items()}
        for shortlist in (by_node, stepped, one_by_one):
            names = [scheduler.state.nodes.names[row] for row in shortlist.rows[shortlist.best()].tolist()]
            assert sorted(name or "" for name in names) == best_nodes(candidates)
    else:
        assert dict(by_node.refusals) == dict(stepped.refusals) == dict(one_by_one.refusals)
    scheduler.state.check_invariants()


@settings(max_examples=80, deadline=None)
@given(small_clusters(), st.integers(1, 4))
def test_both_ways_end_their_search_at_the_same_candidate(
    world: tuple[list[SmallNode], list[SmallBudget], SmallPod], wanted: int
) -> None:
    nodes, budgets, pod = world
    scheduler = _scheduler(nodes, budgets)
    plan = _plan(scheduler, pod)
    rows = np.array([scheduler.state.nodes.row_of[each.name] for each in nodes], dtype=np.intp)
    by_node = _node_by_node(scheduler, plan, pod, rows, wanted)
    for few in (0, len(rows)):
        stepped = _in_lockstep(scheduler, plan, pod, rows, wanted, few)
        assert stepped.rows.tolist() == by_node.rows.tolist()
        assert _told(scheduler, stepped) == _told(scheduler, by_node)
        for column in ("violations", "highest", "sums", "counts", "starts"):
            assert getattr(stepped, column).tolist() == getattr(by_node, column).tolist()


def test_numbers_that_plain_ones_must_not_hold_are_left_to_arrays() -> None:
    scheduler = scheduler_of([node("n1", "2"), running("r", "2", 0, "n1")])
    pod = preemptor("2", 5, "vip").obj()
    preempt(scheduler, pod)
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    parts = supposed_parts(plan)
    assert parts is not None
    trial = RowTrial(plan, parts, scheduler.nominated_pods(pod))
    potential = list(scheduler.state.pods_on[0].values())
    found = trial.run(0, potential)
    assert found is not None
    assert found.victims == [0]
    scheduler.state.usage[3, 0] += SMALL
    assert trial.run(0, potential) is None


@pytest.mark.parametrize("seed", range(8))
def test_kept_outcomes_follow_every_change_of_the_cluster(seed: int) -> None:
    random = Random(seed)
    scheduler = scheduler_of([node(f"n{number:02}", random.choice(("2", "4"))) for number in range(12)])
    plugin = scheduler.profiles["default-scheduler"].plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    kinds = [preemptor(cpu, priority, f"vip{cpu}-{priority}").obj() for cpu in ("1", "2") for priority in (3, 9)]
    for step in range(80):
        state, kind = scheduler.state, random.random()
        if kind < 0.5:
            name = random.choice(sorted(state.nodes.row_of))
            started = f"2026-01-01T00:00:{random.randrange(60):02}Z"
            made = running(f"r{step}", random.choice(("0", "1", "2")), random.randrange(10), name, started)
            scheduler.handle(None, made.label(app=random.choice("ab")).obj(), step)
        elif kind < 0.65 and state.pods:
            scheduler.handle(scheduler.pods[random.choice(sorted(state.pods))], None, step)
        elif kind < 0.75:
            nominee = random.choice(kinds)
            scheduler.pods[nominee.key] = nominee
            where = NominatingInfo(NominatingMode.OVERRIDE, random.choice(("", *sorted(state.nodes.row_of))))
            scheduler.queue.nominate(nominee, where)
        elif kind < 0.8:
            scheduler.handle(None, default_object(decode(budget({"app": "a"}, random.randrange(3)))), step)
        elif kind < 0.85:
            name = random.choice(sorted(state.nodes.row_of))
            known = state.nodes.nodes[state.nodes.row_of[name]]
            scheduler.handle(known, node(name, random.choice(("2", "4", "6"))).obj(), step)
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
        budgets = DisruptionBudgets(scheduler.state.catalog)
        crowd = scheduler.nominated_pods(pod)
        want = search_node_by_node(plan, rows, pod.spec.priority or 0, crowd, budgets, len(rows))
        assert found.candidates == {
            scheduler.state.nodes.names[row] or "": tuple(info.key for info in want.victims_at(place))
            for place, row in enumerate(want.rows.tolist())
        }


def crowded_pod(random: Random, name: str, priority: int) -> Pod:
    """Return a pod that may want company, distance, even spreading over zones or hosts, and a port of its node."""
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
def test_rules_that_count_pods_find_in_lockstep_what_they_find_node_by_node(seed: int) -> None:
    random = Random(seed)
    names = [f"n{number:02}" for number in range(random.choice((8, 14)))]
    made = [node(name, random.choice(("1", "2", "4"))).zone(random.choice("abc")) for name in names]
    scheduler = scheduler_of(made if random.random() < 0.7 else [*made, make_node("bare").capacity(cpu="4")])
    names = sorted(scheduler.state.nodes.row_of)
    in_lockstep = found = 0
    for step in range(60):
        pod = crowded_pod(random, f"r{step}", random.randrange(4))
        deleted = "2026-01-01T00:00:00Z" if random.random() < 0.1 else None
        metadata = replace(pod.metadata, deletion_timestamp=deleted)
        status = replace(pod.status, start_time=f"2026-01-01T00:00:{step:02}Z")
        bound = replace(pod, metadata=metadata, status=status, spec=replace(pod.spec, node_name=random.choice(names)))
        scheduler.handle(None, bound, step)
        if random.random() < 0.3:
            nominee = crowded_pod(random, f"nominee{step % 4}", random.randrange(2, 12))
            scheduler.pods[nominee.key] = nominee
            where = NominatingInfo(NominatingMode.OVERRIDE, random.choice(("", *names)))
            scheduler.queue.nominate(nominee, where)
        if random.random() < 0.1:
            scheduler.handle(None, default_object(decode(budget({"app": "a"}, random.randrange(3)))), step)
        vip = crowded_pod(random, f"vip{step}", random.choice((3, 9)))
        preempt(scheduler, vip)
        plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], vip)
        table, supposed = VictimTable(scheduler.state), supposed_parts(plan)
        assert table.refresh()
        assert supposed is not None
        rows = np.flatnonzero(scheduler.state.nodes.alive)
        rows = rows[plan.static_feasible[rows] & ~table.shares_ports[rows]]
        if plan.pre.status is not None or not len(rows):
            continue
        budgets = DisruptionBudgets(scheduler.state.catalog)
        crowd, priority = scheduler.nominated_pods(vip), vip.spec.priority or 0
        lockstep = Lockstep(plan, supposed, table, crowd, budgets)
        stepped = search_in_lockstep(plan, partial(_run, lockstep, priority), rows, len(rows))
        by_node = search_node_by_node(plan, rows, priority, crowd, budgets, len(rows))
        assert _told(scheduler, stepped) == _told(scheduler, by_node)
        assert stepped.rows.tolist() == by_node.rows.tolist()
        if not len(by_node):
            assert dict(stepped.refusals) == dict(by_node.refusals)
        in_lockstep += supposed.needs_pods
        found += len(by_node)
    assert in_lockstep > 20
    assert found > 20


def _run(lockstep: Lockstep, priority: int, block: Index) -> Outcome:
    return lockstep.run(block, priority)


def test_a_port_that_two_pods_hold_is_dry_run_in_earnest() -> None:
    def with_port(name: str, on: str, priority: int) -> Pod:
        builder = make_pod(name).priority(priority).req(cpu="100m").host_port(80)
        return (builder.node(on) if on else builder).obj()

    names = [f"n{number}" for number in range(9)]
    scheduler = scheduler_of([node(name) for name in names])
    for name in names:
        scheduler.handle(None, with_port(f"first-{name}", name, 1), 0)
    scheduler.handle(None, with_port("second", "n4", 50), 0)
    # The port of n4 counts as free as soon as one of both leaves: the pod that stays does not keep it.
    assert preempt(scheduler, with_port("vip", "", 9)).candidates["n4"] == ("default/first-n4",)


def test_the_table_of_victims_follows_pods_that_come_go_and_start() -> None:
    scheduler = scheduler_of([node("n1"), running("a", "1", 0), running("b", "1", 0)])
    table = VictimTable(scheduler.state)
    assert table.refresh()
    assert [info.key for info in table.pods[0]] == ["default/b", "default/a"]
    early = running("b", "1", 0, started="2020-01-01T00:00:00Z").obj()
    scheduler.handle(scheduler.pods["default/b"], early, 1)
    scheduler.handle(None, running("c", "1", -5).obj(), 2)
    assert table.refresh()
    assert [info.key for info in table.pods[0]] == ["default/c", "default/a", "default/b"]
    scheduler.handle(scheduler.pods["default/a"], None, 3)
    assert table.refresh()
    assert [info.key for info in table.pods[0]] == ["default/c", "default/b"]
    for number in range(12):
        scheduler.handle(None, running(f"more{number}", "10m", number).obj(), 4)
    assert table.refresh()
    assert len(table.pods[0]) == 14
    assert table.priorities[:14, 0].tolist() == sorted(table.priorities[:14, 0].tolist())


def test_a_dry_run_leaves_the_order_of_pods_on_a_node_alone() -> None:
    scheduler = scheduler_of([node("n1"), *(running(name, "1") for name in "abcd")])
    before = list(scheduler.state.pods_on[0])
    found = preempt(scheduler, preemptor("1").obj())
    # Equals in priority and start: the one that came last is the last to be spared.
    assert found.candidates == {"n1": ("default/d",)}
    assert list(scheduler.state.pods_on[0]) == before


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "want"),
    [
        pytest.param(10, 100, 50, 50, id="a small cluster is looked at as a whole"),
        pytest.param(10, 100, 5000, 500, id="a share of a large one"),
        pytest.param(10, 100, 500, 100, id="never fewer than the absolute number"),
        pytest.param(0, 1, 7, 1, id="one is enough"),
        pytest.param(50, 1, 7, 3, id="shares are cut off"),
    ],
)
def test_number_of_candidates(percentage: int, absolute: int, nodes: int, want: int) -> None:
    arguments = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "DefaultPreemption", "args": arguments}]}
    scheduler = scheduler_of([], config={"profiles": [profile]})
    plugin = scheduler.profiles["default-scheduler"].plugins["DefaultPreemption"]
    evaluator = getattr(plugin, "evaluator")  # noqa: B009 - the profile knows plugins by their base class only.
    assert evaluator.number_of_candidates(nodes) == want
