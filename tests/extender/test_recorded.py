"""Recorded cycles of the real scheduler with HTTP extenders: the same extenders over loopback give the same outcome.

conformance/extenders/README.md describes the cases and how they were recorded.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import RecordedCase, read_case_files
from bayplan.conformance.comparer import compare

FOLDER = Path(__file__).resolve().parents[2] / "conformance" / "extenders"
CASES = [case for file in read_case_files([FOLDER]) for case in file]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id.partition("/")[2]) for case in CASES])
def test_recorded_cases_give_the_recorded_outcome(case: RecordedCase) -> None:
    assert compare(case, answer(case)).differences == []


def test_the_comparison_covers_every_part() -> None:
    [case] = [case for case in CASES if case.id == "extenders/filter/fails-all"]
    found = answer(case)
    extended = found.body["extended"]
    assert isinstance(extended, list)
    [reported] = extended
    assert isinstance(reported, dict)
    for part in reported.keys() - {"hosts"}:
        changed = type(found)({**found.body, "extended": [{**reported, part: "something else", "hosts": ["n9"]}]})
        assert compare(case, changed).differences != [], part
