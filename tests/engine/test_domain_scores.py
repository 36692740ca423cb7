"""Affinity and spreading: totals always equal those of a full pass, while pods, node usage and services change."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.plan import Plan
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import Sample
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.service import Service
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.views import Rows
from bayplan.testing.row_results import verdicts_of
from tests.engine.full_pass import full_pass

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def make_node(random: Random, number: int, *, whole: bool) -> Node:
    """Return a node. With `whole`, it has both labels, and its own host name; otherwise it may lack or share them."""
    labels = {HOSTNAME: f"n{number}", ZONE: random.choice(("a", "b", "c"))}
    if not whole and random.random() < 0.2:
        labels[HOSTNAME] = "shared"
    if not whole and random.random() < 0.2:
        del labels[random.choice((HOSTNAME, ZONE))]
    amounts = {"cpu": random.choice(("500m", "1", "4")), "memory": "8Gi", "pods": "110"}
    document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    node = decode(document)
    assert isinstance(node, Node)
    return node


def make_pod(random: Random, name: str) -> Pod:
    """Return a pod of one of a few templates with terms and constraints of several kinds, keys and weights."""
    shape = Random(random.randrange(10))
    labels = {"app": shape.choice("xy")}
    selector = {"matchLabels": {"app": shape.choice("xy")}}
    spec: dict[str, object] = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}],
        "schedulerName": "default-scheduler",
    }
    constraints = [
        {
            "maxSkew": shape.choice((1, 2, 5)),
            "topologyKey": key,
            "whenUnsatisfiable": shape.choice(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway")),
            "labelSelector": selector,
        }
        for key in (HOSTNAME, ZONE)
        if shape.random() < 0.4
    ]
    if constraints:
        spec["topologySpreadConstraints"] = constraints
    affinity: dict[str, dict[str, list[object]]] = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for key in (HOSTNAME, ZONE):
            if shape.random() < 0.3:
                term = {"topologyKey": key, "labelSelector": selector}
                weighted = {"weight": shape.choice((1, 50)), "podAffinityTerm": term}
                affinity.setdefault(kind, {}).setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(
                    weighted
                )
            elif shape.random() < 0.1:
                term = {"topologyKey": key, "labelSelector": selector}
                affinity.setdefault(kind, {}).setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(
                    term
                )
    if affinity:
        spec["affinity"] = affinity
    metadata = {"name": name, "namespace": "default", "labels": labels, "uid": f"uid-{name}"}
    pod = decode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert isinstance(pod, Pod)
    return pod


def make_service() -> Service:
    metadata = {"name": "s", "namespace": "default"}
    service = decode({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": "x"}}})
    assert isinstance(service, Service)
    return service


def make_scheduler(*, sampling: bool) -> Scheduler:
    return assemble_scheduler(
        default_configuration(),
        in_tree_registry(),
        feature_gates=FeatureGates(),
        seed=1,
        record_level=RecordLevel.OFF,
        sampling=sampling,
    )


def plan_of(scheduler: Scheduler, pod: Pod) -> Plan | None:
    """Return the pod's plan, brought up to date, or None if the pod does not fit on two nodes or more."""
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    if plan.run_pre_filter_plugins(CycleState()).status is not None:
        return None
    plan.refresh_filters()
    if plan.filtered.count < 2:
        return None
    plan.refresh_scores()
    return plan


def step(random: Random, scheduler: Scheduler, number: int, *, whole: bool) -> None:
    """Add and schedule a pod; sometimes also delete a pod, add or delete a node, or add a service."""
    scheduler.handle(None, make_pod(random, f"p{number}"), number)
    scheduler.schedule_one(number)
    state, chance = scheduler.state, random.random()
    if chance < 0.3 and state.pods:
        info = state.pods[random.choice(sorted(state.pods))]
        node_name = state.nodes.names[info.row] or ""
        scheduler.handle(replace(info.pod, spec=replace(info.pod.spec, node_name=node_name)), None, number)
    elif chance < 0.34:
        scheduler.handle(None, make_node(random, 1000 + number, whole=whole), number)
    elif chance < 0.37 and len(state.nodes) > 4:
        row = state.nodes.row_of[random.choice(sorted(state.nodes.row_of))]
        scheduler.handle(state.nodes.nodes[row], None, number)
    elif chance < 0.38:
        scheduler.handle(None, make_service(), number)


@pytest.mark.parametrize("whole", [True, False], ids=["every node has the keys", "some nodes lack or share them"])
@pytest.mark.parametrize("seed", range(6))
def test_incremental_results_equal_a_full_pass(seed: int, whole: bool) -> None:
    random = Random(seed)
    scheduler = make_scheduler(sampling=False)
    for number in range(random.choice((6, 40, 90))):
        scheduler.handle(None, make_node(random, number, whole=whole), 0)
    for number in range(150):
        step(random, scheduler, number, whole=whole)
        plan = plan_of(scheduler, make_pod(random, "probe"))
        if plan is None:
            continue
        alive = np.flatnonzero(scheduler.state.nodes.alive)
        verdicts = [
            verdicts_of(part.plugin, part.spec, part.params, Rows(plan.state, alive)) for part in plan.filtered.results
        ]
        assert np.array_equal(plan.filtered.feasible[alive], ~np.any(verdicts, axis=0))
        assert np.array_equal(
            plan.totals.total[: scheduler.state.nodes.count], full_pass(plan, plan.filtered.feasible).total
        )
    scheduler.state.check_invariants()


@pytest.mark.parametrize("seed", range(4))
def test_scoring_a_sample_finds_the_same_best_nodes_as_a_full_pass(seed: int) -> None:
    random = Random(seed)
    scheduler = make_scheduler(sampling=False)
    for number in range(30):
        scheduler.handle(None, make_node(random, number, whole=seed % 2 == 0), 0)
    compared = 0
    for number in range(100):
        step(random, scheduler, number, whole=seed % 2 == 0)
        plan = plan_of(scheduler, make_pod(random, "probe"))
        if plan is None or plan.pre_scores.reads_feasible:
            continue
        rows = np.flatnonzero(plan.filtered.feasible)
        sample = np.array(random.sample(rows.tolist(), random.randint(1, len(rows))), dtype=np.intp)
        chosen = np.zeros_like(plan.filtered.feasible)
        chosen[sample] = True
        wanted = full_pass(plan, chosen).total
        plan.refresh_scores(Sample(sample))
        highest, best = plan.totals.best(Sample(sample))
        assert (highest, list(best)) == (wanted.max(), np.flatnonzero(wanted == wanted.max()).tolist())
        compared += 1
    assert compared
