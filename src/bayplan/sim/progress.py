"""How far a simulation is, for progress bars."""

from __future__ import annotations

from typing import NamedTuple


class Progress(NamedTuple):
    """The progress of a run.

    Attributes:
        now_ns: virtual time.
        operations_left, operations: external ones.
        waiting: pods in the scheduling queue.
        decisions: cycles so far.
    """

    now_ns: int
    operations_left: int
    operations: int
    waiting: int
    decisions: int
