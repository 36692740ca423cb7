"""Which rows changed, in order: an append-only log that any number of readers follow by their own position.

There are no dirty flags and nothing to clear. A reader that has fallen further behind than the log reaches back is told so
and evaluates in full.
"""


class RowLog:
    """An append-only log of row numbers.

    Attributes:
        rows: the entries that are still kept; entry ``k`` of the log is ``rows[k - start]``.
        start: how many entries have been cut off at the front.
        end: the position after the last entry: where a reader that has seen everything stands.
    """

    __slots__ = ("end", "rows", "start")

    LIMIT = 1 << 20
    """How many entries are kept at most; the older half is cut when there are more."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.start = 0
        self.end = 0

    def append(self, row: int) -> None:
        """Note that `row` changed."""
        self.rows.append(row)
        self.end += 1
        if len(self.rows) > self.LIMIT:
            cut = self.LIMIT // 2
            del self.rows[:cut]
            self.start += cut

    def since(self, position: int) -> list[int] | None:
        """Return the entries from `position` on (with repetitions), or None where the log no longer reaches back so far."""
        if position < self.start:
            return None
        return self.rows[position - self.start :]
