"""The outcome of a proof."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Proof:
    """The cases of a proof.

    Attributes:
        cases: how many were looked at. counts: of what kinds they were. failures: what was wrong, with the name of the case.
    """

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Return one line."""
        shown = ", ".join(f"{name} {count:,}" for name, count in self.counts.most_common())
        return f"{self.cases:,} cases, {len(self.failures):,} failures; {shown}"
