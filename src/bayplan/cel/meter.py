"""Limits of one run of an expression: cel-go's cost, and work that cel-go doesn't count.

cel-go joins lists without copying them, and compares nested values for the cost of their outermost size. Here both take time
and memory, so a second limit stops a run that would take more than a moment.
"""

from __future__ import annotations

from contextvars import ContextVar

from bayplan.cel.problems import RunProblem

COST_LIMIT = 1_000_000
MAX_WORK = 500_000
"""Maximum number of elements that functions may process in one run, about 1 us each."""
LETTERS_PER_WORK = 16
"""Number of characters, or of copied elements, that take as long as one processed element."""


class CostExceeded(RunProblem):
    """The run exceeded a limit; no operator catches this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Meter:
    """The cost and the work of one run so far."""

    __slots__ = ("cost", "work")

    def __init__(self) -> None:
        self.cost = 0
        self.work = 0


METER: ContextVar[Meter] = ContextVar("meter")


def spend_work(elements: int) -> None:
    """Count elements that are about to be processed.

    Raises:
        CostExceeded: the total is over the limit. Outside a run nothing is counted.
    """
    meter = METER.get(None)
    if meter is not None:
        meter.work += elements
        if meter.work > MAX_WORK:
            raise CostExceeded


def spend_copy(*values: object) -> None:
    """Count values that are about to be read or copied once."""
    for value in values:
        if isinstance(value, str | bytes | list) and len(value) >= LETTERS_PER_WORK:
            spend_work(len(value) // LETTERS_PER_WORK)
