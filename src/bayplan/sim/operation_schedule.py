"""The operations of a simulation that are still to be executed, ordered by time, rank and order of addition."""

from __future__ import annotations

from bayplan.sim.operations import Operation


class OperationSchedule:
    """Scheduled operations.

    Attributes:
        added: the number of operations added so far.
    """

    def __init__(self) -> None:
        self.added = 0
        # Sorted when needed, the next operation last: nearly all are added before the run begins.
        self._operations: list[tuple[int, int, int, Operation]] = []
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._operations)

    def add(self, time_ns: int, operation: Operation) -> None:
        """Add an operation."""
        self.added += 1
        self._operations.append((time_ns, operation.rank, self.added, operation))
        self._is_sorted = False

    def next_ns(self) -> int | None:
        """Return the time of the next operation, or None."""
        if not self._is_sorted:
            self._is_sorted = True
            self._operations.sort(reverse=True)
        left = len(self._operations)
        return self._operations[left - 1][0] if left else None

    def pop(self) -> Operation:
        """Remove and return the next operation; call `next_ns` before."""
        return self._operations.pop()[3]
