"""Counts of agreement: per family and per part, over any number of cases. Independent of files and output."""

from dataclasses import dataclass, field

from bayplan.conformance.cases import Json, JsonObject, RecordedCase
from bayplan.conformance.comparer import Comparison, Difference


@dataclass(slots=True)
class PartSummary:
    """Agreement in one part of the answers.

    Attributes:
        cases: the number of cases in which the part was compared.
        agreed: the number of those without a difference in the part.
        checks: the number of comparisons: a case with many cycles or steps compares the part once in each that was
            followed.
        checks_agreed: the number of comparisons without a difference.
    """

    cases: int = 0
    agreed: int = 0
    checks: int = 0
    checks_agreed: int = 0

    def add(self, other: "PartSummary") -> None:
        """Add the counts of another summary of the same part."""
        self.cases += other.cases
        self.agreed += other.agreed
        self.checks += other.checks
        self.checks_agreed += other.checks_agreed


@dataclass(slots=True)
class FamilySummary:
    """Agreement in one family of cases. `parts` has sub-parts too, as ``part/name``."""

    name: str
    kind: str
    cases: int = 0
    agreed: int = 0
    parts: dict[str, PartSummary] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseDifference:
    """The first difference in one part of one case; `more` is the number of further differences in that part."""

    case: RecordedCase
    difference: Difference
    more: int


@dataclass(slots=True)
class Summary:
    """Agreement over all cases. Families are in the order of their first case, differences in the order of cases."""

    cases: int = 0
    agreed: int = 0
    families: dict[str, FamilySummary] = field(default_factory=dict)
    differences: list[CaseDifference] = field(default_factory=list)

    def add(self, case: RecordedCase, comparison: Comparison) -> None:
        """Count one case, and store its differences."""
        agreed = not comparison.differences
        family = self._family(case)
        self.cases += 1
        self.agreed += agreed
        family.cases += 1
        family.agreed += agreed
        for name, tally in comparison.parts.items():
            part = family.parts.setdefault(name, PartSummary())
            part.add(PartSummary(1, int(tally.checks == tally.agreed), tally.checks, tally.agreed))
        by_part: dict[str, list[Difference]] = {}
        for difference in comparison.differences:
            by_part.setdefault(difference.part, []).append(difference)
        self.differences += [CaseDifference(case, found[0], len(found) - 1) for found in by_part.values()]

    def parts(self, kind: str) -> dict[str, PartSummary]:
        """Return the parts of all families of a kind, summed and sorted by name."""
        total: dict[str, PartSummary] = {}
        for family in self.families.values():
            if family.kind == kind:
                for name, part in family.parts.items():
                    total.setdefault(name, PartSummary()).add(part)
        return dict(sorted(total.items()))

    def as_json(self) -> JsonObject:
        """Return the counts and the differences (the first in each part of each case) as the JSON object of the CLI."""
        return {
            "cases": self.cases,
            "agreed": self.agreed,
            "families": {name: _family_json(family) for name, family in self.families.items()},
            "differences": [_difference_json(each) for each in self.differences],
        }

    def _family(self, case: RecordedCase) -> FamilySummary:
        # Two kinds may have families with the same name (classic and current volumes): prefix the second one with its
        # kind.
        name = case.family
        if name in self.families and self.families[name].kind != case.kind:
            name = f"{case.kind}/{case.family}"
        return self.families.setdefault(name, FamilySummary(name, case.kind))


def _family_json(family: FamilySummary) -> JsonObject:
    parts: JsonObject = {
        name: {
            "cases": part.cases,
            "agreed": part.agreed,
            "checks": part.checks,
            "checksAgreed": part.checks_agreed,
        }
        for name, part in sorted(family.parts.items())
    }
    return {"cases": family.cases, "agreed": family.agreed, "parts": parts}


def _difference_json(each: CaseDifference) -> dict[str, Json]:
    part, where, want, got = each.difference
    return {
        "id": each.case.id,
        "family": each.case.family,
        "kind": each.case.kind,
        "part": part,
        "where": where,
        "want": want,
        "got": got,
        "more": each.more,
        "note": each.case.note,
    }
