"""The result of a proof."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Proof:
    """The cases of a proof.

    Attributes:
        cases: the number of checked cases.
        counts: the number of cases by kind.
        failures: the failures, each with the name of its case.
    """

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return the result as one line."""
        shown = ", ".join(f"{name} {count:,}" for name, count in self.counts.most_common())
        return f"{self.cases:,} cases, {len(self.failures):,} failures; {shown}"
