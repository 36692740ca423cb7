"""The engine agrees with all recorded cases of the repository as `conformance/agreement.json` says.

The cases are in `conformance/`. To examine a case that fails, use ``bayplan conformance FILE --only ID``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.conformance.agreement import encode_table, measure, read_table, recorded_files
from bayplan.conformance.fidelity import with_table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "conformance"

DECISIONS = ("annotations", "classic", "config", "cycles", "e2e", "extenders", "hints", "queue", "sampled")
"""Kinds of cases in which nothing may differ."""


@pytest.mark.parametrize("name", recorded_files(FOLDER))
def test_recorded_cases_reach_the_agreement_of_the_table(name: str) -> None:
    reached, reported = measure(FOLDER, name), read_table(FOLDER).files[name]
    assert reached.keys() == reported.keys()
    for family, found in reached.items():
        assert (found.cases, found.agreed) == (reported[family].cases, reported[family].agreed), (
            f"{family}: run make agreement"
        )
        assert found.parts == reported[family].parts, f"{family}: run make agreement"


def test_the_agreement_table_lists_exactly_the_recorded_files() -> None:
    assert list(read_table(FOLDER).files) == recorded_files(FOLDER)
    assert encode_table(read_table(FOLDER)) == (FOLDER / "agreement.json").read_bytes()


def test_all_decision_cases_agree_in_every_part() -> None:
    differing = {
        f"{name} {family} {part}"
        for name, families in read_table(FOLDER).files.items()
        if name.partition("/")[0] in DECISIONS
        for family, found in families.items()
        for part, count in found.parts.items()
        if count.agreed != count.checks or found.agreed != found.cases
    }
    assert differing == set()


def test_fidelity_page_contains_the_current_table() -> None:
    document = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
    assert document == with_table(document, read_table(FOLDER)), "run: make agreement"


def test_recorded_data_stays_below_8_mib() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 8 << 20
