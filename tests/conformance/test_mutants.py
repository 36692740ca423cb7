"""One-field mutants of objects of every kind are answered as a real kube-apiserver answers them, as far as the counts below say."""

from __future__ import annotations

from pathlib import Path

from bayplan.conformance.mutants import compare_mutants, read_mutants

FILE = Path(__file__).parents[2] / "conformance" / "api_mutants" / "shown.jsonl.gz"
VERDICTS, EVERYTHING = 4153, 3995


def test_mutants_are_answered_as_by_a_real_server() -> None:
    total = compare_mutants(read_mutants(FILE)).total()
    assert total.mutants == 4155
    assert total.verdicts >= VERDICTS
    assert total.agreed >= EVERYTHING
