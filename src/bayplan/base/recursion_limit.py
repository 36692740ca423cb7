"""Raise Python's recursion limit while any thread needs it. The limit applies to the whole process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

DEEP_RECURSION_LIMIT = 10_000
"""Depth of nested calls. The most deeply nested expression that the CEL parser allows needs 2,500; calls of Python functions use no
C stack."""


class RecursionLimit:
    """Counts the blocks that need deep recursion; the first block raises the limit, and the last restores it.

    Without the count, a thread that leaves its block would lower the limit for a thread that still recurses.

    Attributes:
        users: the number of blocks in progress, of all threads.
    """

    def __init__(self) -> None:
        self.users = 0
        self._lock = Lock()
        self._before = 0

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Execute a block with the limit raised to `DEEP_RECURSION_LIMIT`, unless the current limit is higher."""
        with self._lock:
            if not self.users:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, DEEP_RECURSION_LIMIT))
            self.users += 1
        try:
            yield
        finally:
            with self._lock:
                self.users -= 1
                # Keep a limit that other code has set since.
                if not self.users and sys.getrecursionlimit() == max(self._before, DEEP_RECURSION_LIMIT):
                    sys.setrecursionlimit(self._before)


RECURSION_LIMIT = RecursionLimit()
"""The instance of this process."""
