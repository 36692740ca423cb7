"""Raises Python's recursion limit while any thread needs it. The limit applies to the whole process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

DEEP_RECURSION_LIMIT = 10_000
"""Maximum depth of nested calls. The most deeply nested expression that the CEL parser accepts needs 2,500.

Calls of Python functions take no C stack.
"""


class RecursionLimit:
    """Counts the blocks that need deep recursion: the first one raises the limit, the last one restores it.

    Without the count, a thread that leaves its block would lower the limit for a thread that still needs it.

    Attributes:
        users: the number of blocks in progress, in all threads.
    """

    def __init__(self) -> None:
        self.users = 0
        self._lock = Lock()
        self._before = 0

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Run a block with the limit raised to `DEEP_RECURSION_LIMIT`, unless the limit is higher already."""
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
                # If other code has changed the limit since, keep its limit.
                if not self.users and sys.getrecursionlimit() == max(self._before, DEEP_RECURSION_LIMIT):
                    sys.setrecursionlimit(self._before)


RECURSION_LIMIT = RecursionLimit()
"""The instance of this process."""
