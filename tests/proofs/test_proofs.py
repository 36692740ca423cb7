"""A small sample of `make proofs`: no case may fail."""

from __future__ import annotations

import pytest
from proofs.__main__ import main

from proofs import root_causes, unblock


def test_the_first_suggestion_places_the_pod_and_a_missing_one_could_not_be_found_by_trying_everything() -> None:
    proof = unblock.prove(25, seed=3)
    assert proof.failures == []
    assert proof.cases == 25
    assert len(proof.counts) > 3


def test_root_causes_are_what_comes_of_switching_filters_off() -> None:
    proof = root_causes.prove(12, seed=3)
    assert proof.failures == []
    assert proof.cases == 12
    assert len(proof.counts) > 2


def test_a_proof_prints_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unblock", "--cases", "2", "--seed", "4"]) == 0
    assert capsys.readouterr().out.startswith("unblock: 2 cases, 0 failures; ")
