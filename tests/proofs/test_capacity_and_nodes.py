"""A small sample of the proofs about capacity and nodes; `python -m proofs` checks all cases."""

from __future__ import annotations

import pytest

from proofs import capacity, nodes


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed {seed}") for seed in (11, 12)])
def test_capacity_is_what_scheduling_copies_one_by_one_comes_to(seed: int) -> None:
    proof = capacity.prove(4, seed)
    assert proof.failures == []
    assert proof.cases == 4


@pytest.mark.parametrize("seed", [pytest.param(seed, id=f"seed {seed}") for seed in (11, 12)])
def test_nodes_can_be_removed_and_added_as_the_answers_say(seed: int) -> None:
    proof = nodes.prove(3, seed)
    assert proof.failures == []
    assert proof.cases == 3
