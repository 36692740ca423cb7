"""The comparison with the real engine: Bayplan's side, objects and table, and the real side if its program exists."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.against_real import PROGRAM, Measured, Round, Run, check_same_objects, measure, run_ours, table
from benchmarks.real_kinds import KINDS, pod_document, real_nodes, real_pods

from tests.project.tree import ROOT


def real_program() -> Path:
    """Return the real side's program; skip the test if `make bench-against-real` has not built it."""
    path = ROOT / PROGRAM
    if not path.exists():
        pytest.skip("needs build/real-bench; run make bench-against-real (needs Go)")
    return path


@pytest.mark.parametrize("sampled", [False, True], ids=["all nodes scored", "sampled"])
@pytest.mark.parametrize("kind", KINDS)
def test_bayplan_places_every_benchmark_pod(kind: str, sampled: bool) -> None:
    run = run_ours(kind, 20, 30, sampled=sampled)
    assert run.failed == 0
    assert run.wall_s > 0


def test_node_names_are_unique_and_anti_affinity_pods_have_ten_groups() -> None:
    assert len({node.metadata.name for node in real_nodes(30)}) == 30
    assert {pod.metadata.labels["group"] for pod in real_pods("antiaffinity", 30)} == {f"g{n}" for n in range(10)}


def test_an_unknown_pod_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind of pods 'other'; expected one of basic, spread"):
        pod_document("other", 0)


@pytest.mark.parametrize(
    ("rounds", "want"),
    [
        pytest.param(
            [Round(Run(10.0, 20.0, 0), Run(0.1, 0.1, 0))],
            "| 5,000 nodes, 1,000 pods: plain | all nodes | 100 (2.0) | 10,000 (1.0) | **100** (100) | 200 |",
            id="one round",
        ),
        pytest.param(
            [Round(Run(10.0, 15.0, 0), Run(0.1, 0.1, 0)), Round(Run(20.0, 15.0, 0), Run(0.1, 0.1, 0))],
            "| 5,000 nodes, 1,000 pods: plain | all nodes | 50 to 100 (1.0) | 10,000 (1.0) | **150** (100 to 200) | 150 |",
            id="two rounds of which one was slow",
        ),
    ],
)
def test_the_table_shows_rates_cores_and_ratios(rounds: list[Round], want: str) -> None:
    assert table([Measured("basic", False, 5_000, 1_000, rounds)]).splitlines()[-1] == want


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_use_the_same_nodes_and_pods(kind: str) -> None:
    check_same_objects(real_program(), kind)


def test_all_variants_are_measured_in_every_round() -> None:
    found = list(measure(real_program(), ["basic"], 20, 10, 2))
    assert [(one.kind, one.sampled, len(one.rounds)) for one in found] == [("basic", False, 2), ("basic", True, 2)]
