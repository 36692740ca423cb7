"""What all priorities share: their range, the reduce function of several, and errors of single cells.

A priority is a score plugin. Its map phase is `score`, cell by cell; its reduce phase is `scale_over` and `normalize`, over the row
of a priority. Scores go from 0 to 10, and nobody checks that they do.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from bayplan.framework.plugin import NormalizePlugin, Params
from bayplan.state.arrays import Ints
from bayplan.state.views import Rows

MAX_PRIORITY = 10

S = TypeVar("S")


class ReducedPriority(NormalizePlugin[S]):
    """A priority with upstream's NormalizeReduce: the largest count becomes 10, or 0 where few are better.

    Class attributes:
        reverse: whether few are better.
    """

    reverse: ClassVar[bool] = False

    def scale(self, spec: S, params: Params | None, raw: Ints) -> Params:
        """Return the largest count, at least 0."""
        return (max(0, raw.max().item()),)

    def normalize(self, spec: S, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return counts as shares of the largest, cut off."""
        (largest,) = scale
        assert isinstance(largest, int)
        if not largest:
            return raw * 0 + MAX_PRIORITY if self.reverse else raw
        shares = rows.quotient(rows.wrap(raw * MAX_PRIORITY), largest)
        return MAX_PRIORITY - shares if self.reverse else shares


class RowPriority(NormalizePlugin[S]):
    """A priority that upstream computes over all nodes in one function instead of mapping and reducing."""


class FailingPriority(NormalizePlugin[S]):
    """A priority that can't score some pods."""

    def map_error(self, spec: S) -> str:
        """Return why no node can be scored for the pod of a spec, or the empty text."""
        return ""
