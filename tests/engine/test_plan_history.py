"""Full records with plugins whose params change equal the result of a full pass, and use little memory."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from bayplan.engine.plan import Plan
from bayplan.engine.records import Decision, RecordLevel
from bayplan.engine.rule_result import RuleResults
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import FilterPlugin, Params, Plugin, PreFilterPlugin, PreFilterResult
from bayplan.framework.status import Status
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.row_results import verdicts_of
from tests.engine.full_pass import FullPass, full_pass
from tests.schedulers import default_scheduler

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def own_kind(app: str) -> dict[str, Any]:
    return {"matchLabels": {"app": app}}


def spread(app: str, key: str, when: str) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": own_kind(app)}
    return {"topologySpreadConstraints": [constraint]}


def apart(app: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": own_kind(app)}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def together(app: str) -> dict[str, Any]:
    term = {"weight": 10, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": own_kind(app)}}
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


SPECS: dict[str, dict[str, Any]] = {
    "apart": apart("apart"),
    "together": together("together"),
    "soft-zone": spread("soft-zone", ZONE, "ScheduleAnyway"),
    "hard-zone": spread("hard-zone", ZONE, "DoNotSchedule"),
    "soft-host": spread("soft-host", HOSTNAME, "ScheduleAnyway"),
    "plain": {},
}


class Tally:
    """The spec of `Talking`."""

    key = 0


class Talking(PreFilterPlugin[Tally], FilterPlugin[Tally]):
    """Rejects nodes with more than one pod, with a reason that changes in every cycle."""

    name = "Talking"

    def compile(self, pod: Pod, cluster: ClusterState) -> Tally:
        return Tally()

    def pre_filter(self, spec: Tally, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        return PreFilterResult((len(cluster.pods),))

    def filter(self, spec: Tally, params: Params | None, rows: Rows) -> Codes:
        return (rows.pod_count() > 1).astype(np.uint16)

    def reasons(self, spec: Tally, params: Params | None, verdict: int) -> tuple[str, ...]:
        assert params is not None
        return (f"node(s) were busy when {params[0]} pods ran",)


class EvenNodes(PerNodePlugin):
    """Does not declare what it reads, so it runs on all nodes in every cycle."""

    name = "EvenNodes"

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return 50 + len(node.pods) if int(node.name[1:]) % 2 else 10


def scheduler_with(*plugins: type[Plugin[Any]], nodes: int = 24) -> Scheduler:
    scheduler = default_scheduler(plugins, record_level=RecordLevel.FULL)
    for number in range(nodes):
        scheduler.handle(
            None, make_node(f"n{number:03}").capacity(cpu="6", memory="8Gi").zone("abc"[number % 3]).obj(), 0
        )
    return scheduler


def evaluate_again(
    scheduler: Scheduler, pod: Pod, plan: Plan | None = None
) -> tuple[dict[str, list[int]], FullPass | None, list[int]]:
    """Return every filter's verdicts and the scores, all evaluated again, and the existing rows."""
    state = scheduler.state
    plan = plan if plan is not None else scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    assert plan.run_pre_filter_plugins(CycleState()).status is None
    plan.refresh_filters()
    rows = Rows(state)
    alive = np.flatnonzero(state.nodes.alive).tolist()
    codes = {}
    feasible = state.nodes.alive[: state.nodes.count].copy()
    for part in plan.filtered.results:
        verdicts = verdicts_of(part.plugin, part.spec, part.params, rows)
        codes[part.name] = verdicts[alive].tolist()
        feasible &= verdicts == 0
    whole = np.zeros(state.nodes.capacity, dtype=np.bool_)
    whole[: len(feasible)] = feasible
    return codes, full_pass(plan, whole) if feasible.sum() > 1 else None, alive


def check(decision: Decision, codes: dict[str, list[int]], want: FullPass | None, alive: list[int]) -> None:
    assert {name: decision.codes[number].tolist() for number, name in enumerate(decision.filters)} == codes
    if want is None:
        assert decision.scorers == ()
        return
    fits = decision.feasible
    for number, name in enumerate(decision.scorers):
        scores = want.scores[name]
        assert decision.raw[number][fits].tolist() == scores.raw[alive][fits].tolist(), name
        assert decision.normalized[number][fits].tolist() == scores.normalized[alive][fits].tolist(), name
    assert decision.total.tolist() == want.total[alive].tolist()


@pytest.mark.parametrize("plugins", [(), (EvenNodes,)], ids=["in-tree plugins", "with one that declares nothing"])
@pytest.mark.parametrize("seed", range(4))
def test_full_records_equal_a_full_pass_at_the_time(seed: int, plugins: tuple[type[PerNodePlugin], ...]) -> None:
    random = Random(seed)
    scheduler = scheduler_with(*plugins)
    wanted = []
    for step in range(70):
        app = random.choice(list(SPECS))
        pod = make_pod(f"p{step}").label(app=app).req(cpu="500m").spec(**SPECS[app]).obj()
        wanted.append(evaluate_again(scheduler, pod))
        scheduler.handle(None, pod, step)
        assert scheduler.schedule_one(step) is not None
        if random.random() < 0.05:
            scheduler.handle(None, make_node(f"n9{step:02}").capacity(cpu="6", memory="8Gi").zone("a").obj(), step)
        if random.random() < 0.1 and scheduler.state.pods:
            key = random.choice(sorted(scheduler.state.pods))
            gone = scheduler.state.pods[key].pod
            scheduler.state.remove_pod(key)
            scheduler.assumed.pop(key, None)
            scheduler.pods.pop(key, None)
            assert gone is not None
    for number, want in enumerate(wanted):
        check(scheduler.records.decision(number), *want)


def test_changing_reasons_are_recorded_per_cycle() -> None:
    scheduler = scheduler_with(Talking, nodes=3)
    texts = []
    for number in range(6):
        pod = make_pod(f"p{number}").req(cpu="1").obj()
        scheduler.handle(None, pod, 0)
        assert scheduler.schedule_one(0) is not None
        decision = scheduler.records.decision(number)
        found = {status.reasons[0] for row in range(3) if (status := decision.first_failure(row)) is not None}
        texts.append(found)
        assert found <= {f"node(s) were busy when {number} pods ran"}
    assert texts[5] == {"node(s) were busy when 5 pods ran"}
    before = scheduler.records.decision(4)
    found = {status.reasons[0] for row in range(3) if (status := before.first_failure(row)) is not None}
    assert found == {"node(s) were busy when 4 pods ran"}


@pytest.mark.parametrize("app", ["apart", "soft-host", "plain"])
def test_small_changes_take_little_memory_in_records(app: str) -> None:
    scheduler = scheduler_with(nodes=2000)
    for number in range(60):
        scheduler.handle(None, make_pod(f"p{number}").label(app=app).req(cpu="500m").spec(**SPECS[app]).obj(), 0)
        assert scheduler.schedule_one(0) is not None
    assert scheduler.records.nbytes / 60 < 2_000


@pytest.mark.parametrize("seed", range(3))
def test_records_of_alternating_templates_equal_a_full_pass_at_the_time(seed: int) -> None:
    random = Random(seed)
    scheduler = scheduler_with(nodes=60)
    profile, wanted = scheduler.profiles["default-scheduler"], []
    for step in range(130):
        number = random.randrange(9)
        app, cpu = str(number % 3), f"{300 + 150 * (number % 5)}m"
        pod = make_pod(f"p{step}").label(app=app).req(cpu=cpu, memory="64Mi").obj()
        # A separate plan, which shares no results with the recorded one.
        wanted.append(evaluate_again(scheduler, pod, Plan(profile, pod, scheduler.state, RuleResults(scheduler.state))))
        scheduler.handle(None, pod, step)
        assert scheduler.schedule_one(step) is not None
        if random.random() < 0.02:
            scheduler.handle(None, make_node(f"m{step}").capacity(cpu="6", memory="8Gi").zone("a").obj(), step)
        if random.random() < 0.2:
            key = random.choice(sorted(scheduler.state.pods))
            scheduler.state.remove_pod(key)
            scheduler.assumed.pop(key, None)
            scheduler.pods.pop(key, None)
    for number, want in enumerate(wanted):
        check(scheduler.records.decision(number), *want)
