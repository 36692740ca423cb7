"""The agreement table: how many recorded answers in a folder Bayplan reproduces, stored in a file next to them.

`python -m bayplan.conformance.agreement FOLDER` runs all recorded cases of a folder and writes
``FOLDER/agreement.json``. The file is committed, and a test compares it with a run, so that no family, part or plugin
gets worse (or better) without a visible difference. `bayplan.conformance.fidelity` prints it for readers.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from bayplan.conformance.answers import ANSWERERS, answer
from bayplan.conformance.cases import CaseFile, RecordedCase, read_case_files
from bayplan.conformance.comparer import compare
from bayplan.conformance.summary import Summary

FILE_NAME = "agreement.json"

OTHER_RECORDINGS = ("annotations/backend-api.jsonl.gz",)
"""Recordings that are not run here: `tests/http_api/test_kss_api.py` compares them with Bayplan's server."""

_PART = re.compile(rb'\{\s+("checks": \d+),\s+("agreed": \d+)\s+\}')


class PartAgreement(msgspec.Struct, frozen=True):
    """Agreement in one part of the answers (``scores``, ``scores/ImageLocality``): comparisons, and how many agree."""

    checks: int
    agreed: int


class FamilyAgreement(msgspec.Struct, frozen=True):
    """Agreement in one family.

    Attributes:
        cases, agreed: the number of cases, and of those without differences.
        parts: the agreement in each part of the answers, by name of the part.
    """

    cases: int
    agreed: int
    parts: dict[str, PartAgreement]


class AgreementTable(msgspec.Struct, frozen=True):
    """The agreement of a run over a folder: by file (path within the folder), then by family."""

    files: dict[str, dict[str, FamilyAgreement]]

    def kinds(self) -> list[str]:
        """Return the kinds of cases in order, which are the folders of the files."""
        return list(dict.fromkeys(name.partition("/")[0] for name in self.files))

    def families(self, kind: str) -> dict[str, FamilyAgreement]:
        """Return the families in all files of a kind, by name."""
        found: dict[str, FamilyAgreement] = {}
        for name, families in self.files.items():
            if name.partition("/")[0] == kind:
                found |= families
        return found


def recorded_files(folder: Path) -> list[str]:
    """Return the files of recorded cases, as paths within the folder, sorted.

    They are in subfolders named after kinds. Recordings of other servers (`OTHER_RECORDINGS`) are excluded: they have
    their own tests.
    """
    files = (path for path in folder.glob("*/*.jsonl.gz") if path.parent.name in ANSWERERS)
    names = (path.relative_to(folder).as_posix() for path in files)
    return sorted(name for name in names if name not in OTHER_RECORDINGS)


def measure(folder: Path, name: str) -> dict[str, FamilyAgreement]:
    """Run all cases of one file through the engine, and return the agreement of its families by name."""
    summary = Summary()
    [cases] = read_case_files([folder / name])
    for case in _by_fine_families(cases):
        summary.add(case, compare(case, answer(case)))
    return {
        family.name: FamilyAgreement(
            family.cases,
            family.agreed,
            {part: PartAgreement(found.checks, found.checks_agreed) for part, found in sorted(family.parts.items())},
        )
        for family in sorted(summary.families.values(), key=lambda each: each.name)
    }


def measure_all(folder: Path) -> AgreementTable:
    """Run all recorded cases of a folder, and return the agreement of each family by file."""
    return AgreementTable({name: measure(folder, name) for name in recorded_files(folder)})


def read_table(folder: Path) -> AgreementTable:
    """Return the committed table of a folder."""
    return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=AgreementTable)


def encode_table(table: AgreementTable) -> bytes:
    """Return a table as indented JSON with one line for every part, so that differences between tables are readable."""
    return _PART.sub(rb"{\1, \2}", msgspec.json.format(msgspec.json.encode(table), indent=1)) + b"\n"


def _by_fine_families(cases: CaseFile) -> list[RecordedCase]:
    """Return the cases with the finest family names: hints by plugin, ids of three parts by the middle part."""
    fine = []
    for case in cases:
        plugin, parts = case.case.get("plugin"), case.id.split("/")
        if case.kind == "hints":
            fine.append(replace(case, family=plugin if isinstance(plugin, str) else "list"))
        elif len(parts) > 2:
            fine.append(replace(case, family=parts[1]))
        else:
            fine.append(case)
    return fine


if __name__ == "__main__":
    chosen = Path(sys.argv[1])
    (chosen / FILE_NAME).write_bytes(encode_table(measure_all(chosen)))
