"""Print the agreement table for readers: the generated part of `docs/fidelity.md`, between two markers.

`python -m bayplan.conformance.fidelity FOLDER DOCUMENT` replaces that part by the contents of
``FOLDER/agreement.json``. It measures nothing itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bayplan.base.errors import InputError
from bayplan.conformance.agreement import AgreementTable, FamilyAgreement, PartAgreement, read_table

BEGIN = "<!-- Written by `make agreement` from conformance/agreement.json; don't edit. -->"
END = "<!-- End of what `make agreement` writes. -->"

UNITS = {
    "annotations": "values",
    "cycles": "cycles",
    "sampled": "pods",
    "classic": "cycles and operations",
    "queue": "operations",
    "config": "texts",
    "hints": "changes of an object",
}
"""The units in which the comparisons of a kind are counted; "checks" for all other kinds."""


def with_table(document: str, table: AgreementTable) -> str:
    """Return a document with its generated part replaced.

    Raises:
        InputError: the document lacks one of the two markers.
    """
    before, found, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise InputError("document", wanted=f"the markers {BEGIN} and {END}", got="none")
    return f"{before}{BEGIN}\n\n{report(table)}\n{END}{after}"


def report(table: AgreementTable) -> str:
    """Return the table as Markdown: agreement by kind, family, plugin and part."""
    sections = [_kinds(table)]
    sections += [_families(table, kind) for kind in table.kinds()]
    sections += [_plugins(table), _preemption(table)]
    return "\n".join(sections)


def _kinds(table: AgreementTable) -> str:
    rows = []
    for kind in table.kinds():
        families = list(table.families(kind).values())
        unit = sum(_units(kind, family) for family in families)
        rows.append([f"`{kind}`", *_shares(_total(families)), f"{unit:,} {UNITS.get(kind, 'checks')}"])
    rows.append(
        ["all", *_shares(_total(family for kind in table.kinds() for family in table.families(kind).values())), ""]
    )
    return "### All kinds of cases\n\n" + _markdown(["kind", "cases", "agreed", "share", "checked"], rows)


def _families(table: AgreementTable, kind: str) -> str:
    rows = [
        [f"`{name}`", *_shares(PartAgreement(family.cases, family.agreed)), f"{_units(kind, family):,}"]
        for name, family in table.families(kind).items()
    ]
    title = f"### By family: {kind}\n\n"
    return title + _markdown(["family", "cases", "agreed", "share", UNITS.get(kind, "checks")], rows)


def _plugins(table: AgreementTable) -> str:
    """Return agreement in verdicts, scores and hints of each plugin, over all families, as Markdown."""
    cycles = _parts(table.families("cycles").values()) if "cycles" in table.kinds() else {}
    hints = _parts(table.families("hints").values()) if "hints" in table.kinds() else {}
    columns = [
        {name.partition("/")[2]: found for name, found in parts.items() if name.startswith(prefix)}
        for parts, prefix in ((cycles, "filterAll/"), (cycles, "scores/"), (hints, "events/"))
    ]
    heads = ["plugin", "Filter: agreed", "share", "Score: agreed", "share", "hints: agreed", "share"]
    rows = []
    for plugin in sorted({name for column in columns for name in column if name != "None"}):
        found = [column.get(plugin) for column in columns]
        rows.append([plugin, *(cell for each in found for cell in (_of(each), _shares(each)[2]))])
    text = (
        "### By plugin\n\n"
        "Filter is checked in every cycle in which the plugin, run on its own, rejected at least one node: all nodes, codes and\n"
        "reasons. Score is checked in every cycle in which it scored: all raw and normalised scores.\n\n"
    )
    return text + _markdown(heads, rows)


def _preemption(table: AgreementTable) -> str:
    parts = _parts(table.families("cycles").values()) if "cycles" in table.kinds() else {}
    rows = [
        [f"`{name}`", *_shares(found)]
        for name, found in parts.items()
        if "/" not in name or name.startswith("preemption/")
    ]
    return "### By part: cycles\n\n" + _markdown(["part", "checks", "agreed", "share"], rows)


def _units(kind: str, family: FamilyAgreement) -> int:
    """Return the number of compared values, cycles or operations in a family; in other kinds, each case is one."""
    if kind == "annotations":
        return sum(part.checks for part in family.parts.values())
    if kind in ("cycles", "sampled", "classic", "queue"):
        followed = family.parts.get("followed")
        return followed.checks if followed is not None else 0
    return family.cases


def _parts(families: Iterable[FamilyAgreement]) -> dict[str, PartAgreement]:
    total: dict[str, PartAgreement] = {}
    for family in families:
        for name, found in family.parts.items():
            known = total.get(name, PartAgreement(0, 0))
            total[name] = PartAgreement(known.checks + found.checks, known.agreed + found.agreed)
    return dict(sorted(total.items()))


def _total(families: Iterable[FamilyAgreement]) -> PartAgreement:
    counts = [(family.cases, family.agreed) for family in families]
    return PartAgreement(sum(cases for cases, _ in counts), sum(agreed for _, agreed in counts))


def _shares(found: PartAgreement | None) -> list[str]:
    """Return the number of checks, of agreed checks, and their share, which is 100 % only for all checks."""
    if found is None:
        return ["", "", ""]
    tenths = round(1000 * found.agreed / found.checks) if found.checks else 0
    if found.agreed < found.checks:
        tenths = min(tenths, 999)
    share = f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths / 10} %"
    return [f"{found.checks:,}", f"{found.agreed:,}", share]


def _of(found: PartAgreement | None) -> str:
    return "" if found is None else f"{found.agreed:,} of {found.checks:,}"


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, [("---" if place == 0 else "---:") for place in range(len(heads))], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    chosen = Path(sys.argv[2])
    chosen.write_text(with_table(chosen.read_text(encoding="utf-8"), read_table(Path(sys.argv[1]))), encoding="utf-8")
