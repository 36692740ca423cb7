"""A small sample of `make proofs`: no case may fail."""

from __future__ import annotations

import pytest
from proofs.__main__ import main

from proofs import root_causes, unblock


def test_the_first_suggestion_places_the_pod_and_no_suggestion_is_missed() -> None:
    proof = unblock.prove(25, seed=3)
    assert proof.failures == []
    assert proof.cases == 25
    assert len(proof.counts) > 3


def test_root_causes_match_the_results_of_disabling_filters() -> None:
    proof = root_causes.prove(12, seed=3)
    assert proof.failures == []
    assert proof.cases == 12
    assert len(proof.counts) > 2


def test_a_proof_prints_a_summary_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unblock", "--cases", "2", "--seed", "4"]) == 0
    assert capsys.readouterr().out.startswith("unblock: 2 cases, 0 failures; ")
