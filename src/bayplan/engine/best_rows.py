"""The rows with the highest total of a plan, counted at once and looked up when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.engine.plan import Plan


class BestRows:
    """Row numbers, ascending. To be read before the plan is asked again.

    Args:
        plan: whose totals these are. highest: the highest of them. count: how many rows have it.
    """

    __slots__ = ("_count", "_highest", "_plan")

    def __init__(self, plan: Plan, highest: int, count: int) -> None:
        self._plan = plan
        self._highest = highest
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> int:
        return self._plan.nth_best(self._highest, number)

    def __iter__(self) -> Iterator[int]:
        total = self._plan.total[: self._plan.columns.count]
        rows: list[int] = (total == self._highest).nonzero()[0].tolist() if self._count else []
        return iter(rows)
