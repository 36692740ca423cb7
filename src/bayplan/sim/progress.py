"""The progress of a simulation, for progress bars."""

from __future__ import annotations

from typing import NamedTuple


class Progress(NamedTuple):
    """The progress of a run.

    Attributes:
        now_ns: the virtual time.
        operations_left, operations: the number of remaining and of all external operations.
        waiting: the number of pods in the scheduling queue.
        decisions: the number of cycles so far.
    """

    now_ns: int
    operations_left: int
    operations: int
    waiting: int
    decisions: int
