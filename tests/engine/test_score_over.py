"""Scores over other feasible nodes than those of a plan, also without the pods on nodes."""

from __future__ import annotations

import pytest

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.plan import Plan, score_over
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing import make_node, make_pod

WITHOUT = {"disabled": [{"name": "PodTopologySpread"}, {"name": "InterPodAffinity"}]}
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"preFilter": WITHOUT, "filter": WITHOUT}}],
}
SELECTOR = {"matchLabels": {"app": "web"}}
TERM = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": SELECTOR}}
SPEC = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": SELECTOR}
    ],
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [TERM]}},
}


def make_scheduler() -> Scheduler:
    gates = FeatureGates()
    configuration = load_configuration(CONFIGURATION, feature_gates=gates)
    scheduler = assemble_scheduler(configuration, in_tree_registry(), feature_gates=gates, record_level=RecordLevel.OFF)
    add_nodes(scheduler, range(4), zones=2)
    scheduler.handle(None, make_pod("web").label(app="web").req(cpu="20").node("node-1").obj(), 0)
    return scheduler


def add_nodes(scheduler: Scheduler, numbers: range, zones: int) -> None:
    for number in numbers:
        node = make_node(f"node-{number}").label(zone=f"zone-{number % zones}").capacity(cpu="40", memory="80Gi")
        scheduler.handle(None, node.obj(), 0)


def make_spread_pod() -> Pod:
    return make_pod("spread").label(app="web").spec(**SPEC).obj()


def filtered_plan(scheduler: Scheduler) -> Plan:
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], make_spread_pod())
    plan.run_pre_filter_plugins(CycleState())
    plan.refresh_filters()
    return plan


@pytest.mark.parametrize("bare", [False, True], ids=["with pods", "bare nodes"])
def test_the_plan_is_scored_as_before_when_nodes_and_pods_are_added(bare: bool) -> None:
    totals = []
    for scores_others in (False, True):
        scheduler = make_scheduler()
        plan = filtered_plan(scheduler)
        if scores_others:
            score_over(plan, plan.filtered.feasible, bare=bare)
        add_nodes(scheduler, range(4, 400), zones=3)
        plan = filtered_plan(scheduler)
        plan.refresh_scores()
        for number in range(3):
            scheduler.handle(None, make_pod(f"web-{number}").label(app="web").node("node-301").obj(), 0)
        plan = filtered_plan(scheduler)
        plan.refresh_scores()
        totals.append(plan.totals.total.tolist())
    assert totals[0] == totals[1]
    assert len(set(totals[0])) > 2


def test_bare_nodes_are_scored_without_their_pods() -> None:
    plan = filtered_plan(make_scheduler())
    chosen = plan.filtered.feasible[: plan.state.nodes.count]
    scored, bare = score_over(plan, chosen), score_over(plan, chosen, bare=True)
    assert scored.failure is bare.failure is None
    names = [result.name for result in scored.totals.results]
    raw = [plan.totals.results[names.index("NodeResourcesFit")].raw[1] for plan in (scored, bare)]
    assert raw[0] < raw[1]


def test_the_rows_to_score_are_copied() -> None:
    plan = filtered_plan(make_scheduler())
    chosen = plan.filtered.feasible.copy()
    scored = score_over(plan, chosen)
    chosen[0] = False
    assert scored.filtered.feasible[0]
