"""The common parts of all priorities: the range, the shared reduce functions, and errors of single cells.

A priority is a score plugin. Its map phase is `ScoreRule.score`, cell by cell; its reduce phase is `scale` and `normalize`, over
the row of a priority. Scores range from 0 to 10, which is not checked.
"""

from __future__ import annotations

from typing import TypeVar

from bayplan.base import go_arithmetic as go
from bayplan.framework.plugin import NormalizePlugin
from bayplan.framework.rule import Params, Scale, ScoreRule
from bayplan.state.arrays import Flags, Ints
from bayplan.state.columns import Columns

MAX_PRIORITY = 10
_MOST = MAX_PRIORITY

S = TypeVar("S")


class RowPriority(NormalizePlugin[S]):
    """A priority that upstream computes over all nodes in one function instead of mapping and reducing."""


class FailingPriority(NormalizePlugin[S]):
    """A priority that cannot score some pods."""

    def map_error(self, spec: S) -> str:
        """Return why no node can be scored for the pod of a spec, or the empty string."""
        return ""


class ReducedScoreRule(ScoreRule):
    """A rule with upstream's NormalizeReduce: the largest count becomes 10, or 0 if fewer is better.

    Args:
        columns: the columns of the cluster.
        reverse: whether fewer is better.
    """

    def __init__(self, columns: Columns, *, reverse: bool = False) -> None:
        super().__init__(columns)
        self.normalizes = True
        self.reverse = reverse

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest count of a feasible node, at least 0."""
        largest = 0
        for row in range(self.columns.count):
            if feasible[row] and raw[row] > largest:
                largest = raw[row]
        return (int(largest),)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the count as a fraction of the largest, truncated."""
        largest = scale[0]
        if largest == 0:
            return _MOST if self.reverse else raw
        share = go.quotient(go.mul(raw, _MOST), largest)
        return _MOST - share if self.reverse else share
