"""The common parts of all priorities: the range of scores, shared reduce functions, and errors of single cells.

A priority is a score plugin. Its map phase is `ScoreRule.score`, for single nodes; its reduce phase is `scale` and
`normalize`, over all nodes. Scores range from 0 to 10, which is not checked.
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
    """A priority that upstream computes for all nodes in one function, without map and reduce."""


class FailingPriority(NormalizePlugin[S]):
    """A priority that can't score some pods."""

    def map_error(self, spec: S) -> str:
        """Return why no node can be scored for a spec's pod, or ""."""
        return ""


class ReducedScoreRule(ScoreRule):
    """Base of rules with upstream's NormalizeReduce: the largest count becomes 10, or 0 if lower is better.

    Args:
        columns: the columns of the cluster.
        reverse: whether lower counts are better.
    """

    def __init__(self, columns: Columns, *, reverse: bool = False) -> None:
        super().__init__(columns)
        self.normalizes = True
        self.reverse = reverse

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest count of the feasible nodes, at least 0."""
        largest = 0
        for row in range(self.columns.count):
            if feasible[row] and raw[row] > largest:
                largest = raw[row]
        return (int(largest),)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return 10 times the count divided by the largest, truncated; with `reverse`, 10 minus that."""
        largest = scale[0]
        if largest == 0:
            return _MOST if self.reverse else raw
        share = go.quotient(go.mul(raw, _MOST), largest)
        return _MOST - share if self.reverse else share
