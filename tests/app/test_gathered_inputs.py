"""Real clusters, manifests and traces through the whole program: each gives a result that covers all of its pods."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.base.errors import InputError
from bayplan.examples import example_path
from bayplan.sim.result import PodFate, SimulationResult
from tests.shared import shared_path

CLUSTERS = (
    "alibaba+open-simulator",
    "argoproj+argo-cd",
    "hkust-adsl+kubernetes-scheduler-simulator",
    "kubernetes-sigs+kwok",
    "openshift+insights-operator",
    "replicatedhq+troubleshoot",
)

INVALID = "pod-with-node-affinity.invalid-4672b9c9.yaml"
"""The one gathered manifest that the API server would refuse."""


def account(result: SimulationResult) -> None:
    """Check that every pod, every decision and every request is accounted for."""
    result.state.check_invariants()
    result.cluster.store.check_invariants()
    fates = Counter(each.fate for each in result.pods)
    there = {each.key: each for each in result.pods if each.fate not in (PodFate.DELETED,)}
    assert sum(fates.values()) == len(result.pods)
    assert {key for key in result.cluster.store.pods if key not in there} == set()
    counters = result.counters
    assert counters.decisions == len(result.records)
    assert counters.decisions == counters.scheduled + counters.unschedulable + counters.errors + counters.skipped
    assert counters.scheduled == sum(1 for each in result.pods if each.node and not each.imported)
    for usage in result.usage:
        assert 0 <= usage.requested <= usage.peak_requested
        if usage.zone is None and usage.resource not in ("cpu", "memory", "pods"):
            # No pod can get more of an extended resource than exists; imported pods may overcommit other resources.
            assert usage.peak_requested <= usage.peak_allocatable


@pytest.mark.parametrize("name", CLUSTERS)
def test_each_cluster_dump_yields_a_result(name: str) -> None:
    result = simulate(SimulationOptions(paths=[str(shared_path("data", "clusters", name))], check=True))
    account(result)
    assert len(result.pods) + len(result.nodes) > 0


def test_gathered_manifests_yield_results_separately_and_together() -> None:
    nodes = sorted(str(path) for path in example_path().glob("0-nodes-*.yaml"))
    files = sorted(path for path in shared_path("data", "manifests").rglob("*") if path.is_file())
    refused = []
    for path in files:
        try:
            result = simulate(SimulationOptions(paths=[*nodes, _as_pattern(path)]))
        except InputError:
            refused.append(path.name)
            continue
        account(result)
    assert (len(files), refused) == (177, [INVALID])
    together = simulate(
        SimulationOptions(paths=[*nodes, *(_as_pattern(path) for path in files if path.name != INVALID)])
    )
    account(together)
    assert together.counters.scheduled > 100


def _as_pattern(path: Path) -> str:
    """Return a glob pattern for one file: a file that is not named explicitly may contain documents that are no objects."""
    return f"{path.parent}/[{path.name[0]}]{path.name[1:]}"


@pytest.mark.slow
@pytest.mark.parametrize("nodes", ["all_node", "gpu_node"])
def test_the_openb_trace_is_replayed_completely(nodes: str) -> None:
    folder = shared_path("data", "openb")
    paths = [str(folder / f"openb_node_list_{nodes}.csv"), str(folder / "openb_pod_list_default.csv")]
    result = simulate(SimulationOptions(paths=paths))
    account(result)
    # 896 of the 897 tasks that were never scheduled are deleted by the trace; one task has no end.
    assert Counter(each.fate for each in result.pods) == {
        PodFate.SUCCEEDED: 7255,
        PodFate.DELETED: 896,
        PodFate.PLACED: 1,
    }
