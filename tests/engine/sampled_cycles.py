"""Fully recorded scheduling cycles that end their search for feasible nodes before they have checked all nodes."""

from __future__ import annotations

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.cycle import schedule_pod
from bayplan.engine.records import Outcome, Record, RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import NodeSampling, first_by_name
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing.builders import make_node, make_pod


def sampled_cycles(nodes: int, pods: int) -> Scheduler:
    """Schedule pods on nodes of which every third is too small and every fifth has a PreferNoSchedule taint."""
    scheduler = assemble_scheduler(
        default_configuration(), in_tree_registry(), feature_gates=FeatureGates(), record_level=RecordLevel.FULL
    )
    for number in range(nodes):
        builder = make_node(f"n{number:03}").capacity(cpu="1" if number % 3 == 0 else "64", memory="512Gi")
        if number % 5 == 0:
            builder.taint("slow", effect="PreferNoSchedule")
        scheduler.handle(None, builder.zone("abc"[number % 3]).obj(), 0)
    sampling = NodeSampling()
    for number in range(pods):
        pod = make_pod(f"p{number}").req(cpu="2").obj()
        key = f"default/p{number}"
        plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
        result = schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, first_by_name, sampling)
        node = scheduler.state.nodes.names[result.row] or ""
        counts = (result.feasible_nodes, result.evaluated_nodes, len(result.ties), result.total)
        scheduler.records.add(Record(0, key, 1, Outcome.SCHEDULED, node, *counts), plan, result)
        scheduler.assume(plan, pod, key, result.row)
    return scheduler
