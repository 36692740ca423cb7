"""A spawned or forked process receives a cluster state, and schedules with it like this process."""

from __future__ import annotations

import multiprocessing
from random import Random

import pytest

from bayplan.engine.assemble import assemble_scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.cluster_state import ClusterState
from tests.engine.clusters import random_node, random_pod

PODS = 40


def busy_state(seed: int) -> ClusterState:
    """Return a state of twelve nodes with pods on them, some of which came and went."""
    random = Random(seed)
    state = ClusterState()
    for number in range(12):
        state.add_node(random_node(random, f"n{number}"))
    for number in range(30):
        state.place(state.pod_info(random_pod(random, f"old{number}")), random.randrange(12))
    for number in range(0, 30, 4):
        state.remove_pod(f"default/old{number}")
    state.remove_node("n3")
    state.add_node(random_node(random, "n12"))
    return state


def decisions(state: ClusterState) -> list[tuple[str, str | None]]:
    """Schedule forty pods; return the node of each."""
    registry = in_tree_registry()
    gates = FeatureGates.from_mapping({})
    configuration = default_configuration(gates, extension_points_of=registry.extension_points_for_configuration)
    scheduler = assemble_scheduler(configuration, registry, feature_gates=gates, seed=7, state=state)
    random = Random(8)
    for number in range(PODS):
        scheduler.handle(None, random_pod(random, f"new{number}"), 0)
    reports: list[tuple[str, str | None]] = []
    while (report := scheduler.schedule_one(0)) is not None:
        reports.append((report.pod.metadata.name, report.node_name))
    scheduler.state.check_invariants()
    return reports


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_process_makes_the_same_decisions_with_a_pickled_state(method: str) -> None:
    states = [busy_state(seed) for seed in range(3)]
    expected = [decisions(state.fork()) for state in states]
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(decisions, states) == expected
    assert any(node is not None for _, node in expected[0])
    assert [decisions(state) for state in states] == expected, "handing a state to a process changed it"


def test_a_state_pickled_during_a_trial_contains_the_trials_changes() -> None:
    state = busy_state(1)
    with state.trial():
        state.remove_node("n5")
        with multiprocessing.get_context("fork").Pool(1) as pool:
            inside = pool.apply(decisions, (state,))
    assert inside != decisions(state)
