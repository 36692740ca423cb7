"""One question asked of both: the recorded kind of answer of the real scheduler against ours, compared as in conformance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import JsonObject, RecordedCase
from bayplan.conformance.comparer import Difference, compare

Ask: TypeAlias = Callable[[Sequence[JsonObject]], Iterator[JsonObject]]
"""Answers cases with what the real scheduler decides."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A case and where the two answers to it differ. One that the real scheduler did not take has no differences."""

    case: JsonObject
    want: JsonObject
    differences: tuple[Difference, ...]

    @property
    def refused(self) -> bool:
        """Return whether the real scheduler answered with an error."""
        return bool(self.want.get("error"))

    @property
    def parts(self) -> frozenset[str]:
        """Return the parts of the answer that differ."""
        return frozenset(each.part for each in self.differences)


def try_cases(ask: Ask, cases: Sequence[JsonObject]) -> Iterator[Trial]:
    """Ask both about each case."""
    for case, want in zip(cases, ask(cases), strict=True):
        recorded = RecordedCase("cycles", str(case["id"]), "fuzz", str(case.get("note", "")), "fuzz", case, want)
        # What the real scheduler refuses, or panics at, the API refuses before: nothing to compare.
        differences = () if want.get("error") else tuple(compare(recorded, answer(recorded)).differences)
        yield Trial(case, want, differences)
