"""The limits of one evaluation: cel-go's cost, and work that cel-go does not count.

cel-go concatenates lists without copying them, and the cost of comparing nested values covers only their outermost
size. In Python both take time and memory, so a second limit stops evaluations that would take too long.
"""

from __future__ import annotations

from contextvars import ContextVar

from bayplan.base.errors import InvariantError
from bayplan.cel.problems import RunProblem

COST_LIMIT = 1_000_000
MAX_WORK = 500_000
"""Maximum work of functions in one evaluation.

A unit of work stands for processing one element, which takes about 1 us.
"""
LETTERS_PER_WORK = 16
"""Number of characters or copied elements that count as one unit of work."""


class CostExceeded(RunProblem):
    """The evaluation exceeded a limit. No operator ignores this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Meter:
    """The cost and the work of one evaluation so far."""

    __slots__ = ("cost", "work")

    def __init__(self) -> None:
        self.cost = 0
        self.work = 0


METER: ContextVar[Meter] = ContextVar("meter")


def spend_work(elements: int) -> None:
    """Count elements that are about to be processed. Outside an evaluation, nothing is counted.

    Raises:
        CostExceeded: the total exceeds the limit.
        InvariantError: the number is negative, which would lift the limit.
    """
    if elements < 0:
        raise InvariantError(f"CEL: {elements} elements of work")
    meter = METER.get(None)
    if meter is not None:
        meter.work += elements
        if meter.work > MAX_WORK:
            raise CostExceeded


def spend_copy(*values: object) -> None:
    """Count values that are about to be read or copied once.

    Raises:
        CostExceeded: the total exceeds the limit.
    """
    for value in values:
        if isinstance(value, str | bytes | list) and len(value) >= LETTERS_PER_WORK:
            spend_work(len(value) // LETTERS_PER_WORK)
