"""One-field mutants of objects of every kind are answered as by a real kube-apiserver, within the counts below."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.conformance.cases import JsonObject
from bayplan.conformance.mutants import compare_mutants, compared_parts, read_mutants

FOLDER = Path(__file__).parents[2] / "conformance" / "api_mutants"
EVERY = 2
"""One of this many of our own recorded mutants is asked here; `python -m bayplan.conformance.mutants FILE` asks all."""


def test_mutants_are_answered_like_a_real_api_server() -> None:
    total = compare_mutants(read_mutants(FOLDER / "shown.jsonl.gz")).total()
    assert total.mutants == 4155
    assert total.verdicts >= 4155
    assert total.agreed >= 4155


@pytest.mark.parametrize(
    ("name", "verdicts", "agreed"),
    [
        pytest.param("own_shown.jsonl.gz", 0.995, 0.980, id="those that were looked at"),
        pytest.param("own_apart.jsonl.gz", 0.990, 0.970, id="those that were not"),
        pytest.param("status_shown.jsonl.gz", 0.990, 0.940, id="of statuses"),
        pytest.param("status_apart.jsonl.gz", 0.990, 0.935, id="of statuses, kept apart"),
    ],
)
def test_additional_mutants_reach_the_required_agreement(name: str, verdicts: float, agreed: float) -> None:
    bases: dict[str, list[JsonObject]] = {}
    for base, mutants in read_mutants(FOLDER / name).items():
        bases[base] = [each for at, each in enumerate(mutants) if each["op"] == "base" or at % EVERY == 0]
    total = compare_mutants(bases).total()
    assert total.mutants > 400
    assert total.verdicts >= verdicts * total.mutants
    assert total.agreed >= agreed * total.mutants


def test_variable_values_are_not_compared() -> None:
    mutant: JsonObject = {
        "base": "Pod/x", "op": "create", "request": {"a": 1}, "status": 201,
        "object": {"metadata": {"name": "x", "uid": "1"}, "ip": "10.1.2.3", "at": "2026-01-02T03:04:05Z"},
        "variable": ["/object/ip"],
    }  # fmt: skip
    answer: JsonObject = {
        "status": 201, "headers": {"content-type": "application/json"},
        "body": {"metadata": {"name": "x", "uid": "2"}, "ip": "10.4.5.6", "at": "2026-06-07T08:09:10Z"},
    }  # fmt: skip
    wanted, ours = compared_parts(mutant, answer)
    assert wanted == ours


def test_a_missing_warning_is_a_difference() -> None:
    mutant: JsonObject = {"base": "Pod/x", "op": "create", "request": {}, "status": 201, "object": {}, "warning": "w"}
    answer: JsonObject = {"status": 201, "headers": {"content-type": "application/json"}, "body": {}}
    wanted, ours = compared_parts(mutant, answer)
    assert wanted != ours
