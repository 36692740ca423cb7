"""Scoring by domains is cheap: equal nodes are scored once, and unchanged rows are not summed up again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.plan import Plan, score_over
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.kinds import decode
from bayplan.plugins.normalize_score import score_range
from bayplan.plugins.registry import in_tree_registry

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NODES, PODS = 300, 40


def soft(key: str) -> Mapping[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }


def schedule(spec: Mapping[str, Any], *, zones: Sequence[str] = ("a", "b", "c"), sampling: bool = False) -> Plan:
    """Schedule equal pods on nodes in some zones; return their plan."""
    scheduler: Scheduler = assemble_scheduler(
        default_configuration(),
        in_tree_registry(),
        feature_gates=FeatureGates(),
        seed=1,
        record_level=RecordLevel.SUMMARY,
        sampling=sampling,
    )
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    for number in range(NODES):
        labels = {HOSTNAME: f"n{number}", ZONE: zones[number % len(zones)]}
        node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"n{number}", "labels": labels}}
        scheduler.handle(None, decode({**node, "status": {"capacity": amounts, "allocatable": amounts}}), 0)
    found: set[Plan] = set()
    for number in range(PODS):
        metadata = {"name": f"p{number}", "namespace": "default", "labels": {"app": "x"}}
        container = {"name": "c", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
        body = {"schedulerName": "default-scheduler", "containers": [container], **spec}
        pod = decode({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": body})
        scheduler.handle(None, pod, 0)
        assert scheduler.schedule_one(0) is not None
        found.add(
            scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], scheduler.pods[f"default/p{number}"])
        )
    assert len(scheduler.state.pods) == PODS
    return max(found, key=lambda plan: plan.totals.summed + plan.totals.sampled)


@pytest.mark.parametrize(
    ("keys", "groups", "regrouped"),
    [
        pytest.param([ZONE], 3, 0, id="a zone is a group, and placements leave it alone"),
        pytest.param(
            [ZONE, HOSTNAME],
            6,
            PODS - 1,  # The last pod is placed after the last grouping.
            id="with host names also by the pods on a node; a placement changes one row",
        ),
    ],
)
def test_nodes_with_equal_domains_form_one_score_group(keys: list[str], groups: int, regrouped: int) -> None:
    plan = schedule({"topologySpreadConstraints": [soft(key) for key in keys]})
    found = plan.specs["PodTopologySpread"].tables.groups
    assert found.count == groups
    assert found.regrouped - NODES == regrouped


def test_scores_of_groups_need_prepare_after_another_rule_regrouped_nodes() -> None:
    plan = schedule({"topologySpreadConstraints": [soft(ZONE), soft(HOSTNAME)]})
    number = [result.name for result in plan.totals.results].index("PodTopologySpread")
    result = plan.totals.results[number]
    normalized = np.zeros_like(result.values)
    plan.refresh_filters()
    plan.refresh_scores()
    result.score_rule.normalize_all(plan.totals.scales[number], result.values, normalized)
    plan.state.remove_pod("default/p0")
    score_over(plan, plan.filtered.feasible)
    with pytest.raises(TypeError, match="need prepare"):
        result.score_rule.normalize_all(plan.totals.scales[number], result.values, normalized)


PREFERRED = {
    "affinity": {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}},
                }
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("zones", "least", "most"),
    [
        pytest.param(("a",), 1, 4, id="one zone: all nodes stay equal, and single rows are summed up"),
        pytest.param(("a", "b"), PODS // 2, PODS, id="two zones: the distance grows with each pod"),
    ],
)
def test_all_rows_are_summed_only_if_normalized_scores_may_change(zones: Sequence[str], least: int, most: int) -> None:
    assert least <= schedule(PREFERRED, zones=zones).totals.summed <= most


@pytest.mark.parametrize(
    ("spec", "sampled", "summed"),
    [
        pytest.param(
            {"topologySpreadConstraints": [soft(ZONE)]}, PODS, 0, id="soft spreading scales the sample by itself"
        ),
        pytest.param({}, 0, 1, id="totals of all rows serve if nothing is scaled"),
    ],
)
def test_a_sample_is_summed_alone_if_its_scale_depends_only_on_the_sample(
    spec: Mapping[str, Any], sampled: int, summed: int
) -> None:
    totals = schedule(spec, sampling=True).totals
    assert (totals.sampled, totals.summed) == (sampled, summed)


@pytest.mark.parametrize(
    ("raw", "chosen", "want"),
    [
        pytest.param([3, -4, 9], [1, 1, 0], (-4, 3), id="the range of the chosen rows"),
        pytest.param([3], [0], ((1 << 63) - 1, -(1 << 63)), id="no chosen rows"),
    ],
)
def test_score_range_covers_only_the_chosen_rows(raw: list[int], chosen: list[int], want: tuple[int, int]) -> None:
    values, flags = np.array(raw, dtype=np.int64), np.array(chosen, dtype=np.uint8)
    assert score_range(values, flags, len(raw)) == want
