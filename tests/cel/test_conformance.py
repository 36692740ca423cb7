"""The conformance tests of cel-spec, if the Go module ``cel.dev/expr`` is on this machine."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.cel.conformance import Case, Outside, cases, outcome

MODULE = "cel.dev/expr@v0.25.3"
DEPARTURES = Path(__file__).with_name("departures.txt")
MIN_INSIDE = 1100
"""Tests that must be inside: a reader that finds fewer has lost some."""


def folder() -> Path:
    given = os.environ.get("CEL_SPEC")
    if given:
        return Path(given)
    modules = os.environ.get("GOMODCACHE") or os.path.join(os.environ.get("GOPATH") or Path.home() / "go", "pkg", "mod")
    found = Path(modules, MODULE, "tests", "simple", "testdata")
    if not found.is_dir():
        pytest.skip(
            f"needs the Go module {MODULE}, which make test-cluster downloads; CEL_SPEC names its testdata folder elsewhere"
        )
    return found


def departures() -> dict[str, str]:
    lines = DEPARTURES.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines if not line.startswith("#"))


def test_cel_conformance_cases_pass_except_documented_departures() -> None:
    known, left = departures(), departures()
    counts: Counter[str] = Counter()
    failed = []
    for case in cases(folder()):
        left.pop(case.place, None)
        try:
            problem = outcome(case, known.get(case.place, ""))
        except Outside as reason:
            counts[str(reason)] += 1
            continue
        counts["inside"] += 1
        if problem:
            failed.append(f"{case.place}: {problem}")
    print(f"{counts['inside'] - len(failed)} of {counts['inside']} pass; outside: {dict(counts.most_common()[1:])}")
    assert not failed, "\n".join(failed)
    assert not left
    assert counts["inside"] >= MIN_INSIDE


@pytest.mark.parametrize(
    ("case", "departure", "want"),
    [
        pytest.param({"expr": [b"1 + 1"], "value": [{"int64_value": [2]}]}, "", "", id="a value"),
        pytest.param({"expr": [b"1 + 1"], "value": [{"int64_value": [3]}]}, "", "is 2, not 3", id="another value"),
        pytest.param({"expr": [b"1 + 1"], "value": [{"uint64_value": [2]}]}, "", "is 2, not 2", id="another type"),
        pytest.param({"expr": [b"1 == 1"]}, "", "", id="true if no value is given"),
        pytest.param({"expr": [b"1 / 0"], "eval_error": [{}]}, "", "", id="an error"),
        pytest.param({"expr": [b"1 / 1"], "eval_error": [{}]}, "", "is 1, not an error", id="no error"),
        pytest.param({"expr": [b"1 / 1"]}, "refused", "compiles", id="not refused"),
        pytest.param({"expr": [b"1 / 1"]}, "int64_value: 1", "", id="Kubernetes' value"),
    ],
)
def test_outcome_reports_differences_from_the_expected_result(
    case: dict[str, list[object]], departure: str, want: str
) -> None:
    assert outcome(Case("basic/a/b", case), departure) == want  # type: ignore[arg-type]
