"""A small sample of the proofs about capacity, nodes and what-if; `python -m proofs` checks all cases."""

from __future__ import annotations

import pytest

from proofs import capacity, nodes, what_if


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed {seed}") for seed in (11, 12)])
def test_capacity_matches_scheduling_copies_one_by_one(seed: int) -> None:
    proof = capacity.prove(4, seed)
    assert proof.failures == []
    assert proof.cases == 4


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed {seed}") for seed in (11, 12)])
def test_node_additions_and_removals_are_verified_by_scheduling(seed: int) -> None:
    proof = nodes.prove(3, seed)
    assert proof.failures == []
    assert proof.cases == 3


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed {seed}") for seed in (11, 12)])
def test_what_if_and_compare_match_new_clusters(seed: int) -> None:
    proof = what_if.prove(6, seed)
    assert proof.failures == []
    assert proof.cases == 6
