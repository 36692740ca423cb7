"""The predicates and priorities, their order, and the choice of each provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.base.errors import ConfigurationError
from bayplan.classic.algorithms import PREDICATE_ORDER, AlgorithmTable
from bayplan.classic.gates import ClassicGates
from bayplan.testing.builders import make_pod
from tests.classic.cycles import Item, configured, cycle_of, node

ROOT = Path(__file__).resolve().parents[2]

GATES = {
    "default": {},
    "EvenPodsSpread=true": {"EvenPodsSpread": True},
    "ResourceLimitsPriorityFunction=true": {"ResourceLimitsPriorityFunction": True},
    "TaintNodesByCondition=false": {"TaintNodesByCondition": False},
}


def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((ROOT / "conformance" / "classic" / "facts.json").read_text())
    return facts


@pytest.mark.parametrize("under", GATES)
def test_algorithm_tables_match_upstream_under_every_gate(under: str) -> None:
    want, table = _facts()["byFeatureGates"][under], AlgorithmTable(ClassicGates.from_mapping(GATES[under]))
    assert sorted(table.predicates) == want["predicates"]
    assert sorted(table.priorities) == want["priorities"]
    assert sorted(table.mandatory) == want["mandatoryPredicates"]
    assert {name: item.weight for name, item in table.priorities.items()} == want["registeredWeights"]
    for provider, of in want["providers"].items():
        found = table.of_provider(provider)
        assert sorted(item.name for item in found.predicates) == of["predicates"]
        assert {item.name: item.weight for item in found.priorities} == of["priorities"]


def test_predicates_run_in_upstreams_order() -> None:
    assert list(PREDICATE_ORDER) == _facts()["predicateOrder"]
    names = [item.name for item in AlgorithmTable(ClassicGates()).of_provider("DefaultProvider").predicates]
    assert names == [name for name in PREDICATE_ORDER if name in names]


def test_gate_defaults_match_upstream() -> None:
    given = _facts()["featureGates"]
    assert ClassicGates.from_mapping(given) == ClassicGates()


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({"NoSuchGate": True}, "unrecognized feature gate: NoSuchGate"),
        ({"CSIMigration": True}, "feature gate CSIMigration: expected false"),
        ({"PodPriority": False}, "feature gate PodPriority: expected true"),
    ],
)
def test_unknown_and_locked_gates_are_refused(values: dict[str, bool], want: str) -> None:
    with pytest.raises(ConfigurationError, match=want):
        ClassicGates.from_mapping(values)


def test_gates_are_parsed_from_text() -> None:
    assert ClassicGates.from_text("EvenPodsSpread=true,PodPriority=true") == ClassicGates(even_pods_spread=True)


@pytest.mark.parametrize("spelling", ["ClusterAutoscalerProvider", "ClusterAutoScalerProvider"])
def test_both_spellings_of_the_autoscaler_provider_are_accepted(spelling: str) -> None:
    names = {item.name for item in AlgorithmTable(ClassicGates()).of_provider(spelling).priorities}
    assert "MostRequestedPriority" in names
    assert "LeastRequestedPriority" not in names
    assert "BalancedResourceAllocation" in names


def test_an_unknown_provider_is_refused_with_upstreams_message() -> None:
    with pytest.raises(ConfigurationError) as refused:
        AlgorithmTable(ClassicGates()).of_provider("Mine")
    want = 'couldn\'t create scheduler using provider "Mine": plugin "Mine" has not been registered'
    assert str(refused.value).startswith(want)


def test_the_two_providers_choose_opposite_nodes() -> None:
    busy: list[Item] = [make_pod("running").req(cpu="2", memory="4Gi").node("busy")]
    cluster: list[Item] = [node("idle"), node("busy"), *busy]
    pod = make_pod("p").req(cpu="1", memory="2Gi")
    spread = cycle_of(cluster, pod, configured())
    packed = cycle_of(cluster, pod, configured(provider="ClusterAutoscalerProvider"))
    assert spread.chosen == "idle"
    assert packed.chosen == "busy"
    # On the idle node, 7 for CPU and 7 for memory; on the busy one, with 3 of 4 CPUs and 6 of 8 GiB, 2 and 2.
    # MostRequested: 7 and 7.
    assert spread.scores("LeastRequestedPriority") == {"idle": 7, "busy": 2}
    assert packed.scores("MostRequestedPriority") == {"idle": 2, "busy": 7}


def test_the_avoid_pods_weight_exceeds_all_other_scores_together() -> None:
    # 10,000 times 10 is more than the sum of all other priorities.
    found = cycle_of([node("n1"), node("n2")], make_pod("p"), configured())
    weights = {entry.plugin.name: entry.weight for entry in found.plan.profile.score}
    assert weights.pop("NodePreferAvoidPodsPriority") == 10_000
    assert sum(weights.values()) * 10 < 10_000
