"""The NormalizeScore that several plugins share: raw scores stretched so that the largest becomes 100. Not a plugin."""

from __future__ import annotations

from bayplan.base import go_arithmetic as go
from bayplan.framework.rule import MAX_NODE_SCORE, Params, Scale, ScoreRule
from bayplan.state.arrays import Flags, Ints
from bayplan.state.columns import Columns


class StretchedScoreRule(ScoreRule):
    """Base of rules whose scale is the largest raw score of the feasible nodes, at least 0.

    Args:
        columns: of the cluster.
        reverse: whether the largest raw score becomes 0, and no raw score 100.
    """

    def __init__(self, columns: Columns, *, reverse: bool = False) -> None:
        super().__init__(columns)
        self.normalizes = True
        self.reverse = reverse

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest raw score."""
        largest = 0
        for row in range(self.columns.count):
            if feasible[row] and raw[row] > largest:
                largest = raw[row]
        return (int(largest),)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the share of the largest in percent; if that is 0, all scores stay as they are (reversed: become 100)."""
        largest = scale[0]
        if largest == 0:
            return MAX_NODE_SCORE if self.reverse else raw
        stretched = go.quotient(go.mul(raw, MAX_NODE_SCORE), largest)
        return MAX_NODE_SCORE - stretched if self.reverse else stretched
