"""The NormalizeScore that several plugins share: raw scores stretched so that the largest becomes 100. Not a plugin."""

from __future__ import annotations

import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.framework.rule import MAX_NODE_SCORE, Params, Scale, ScoreRule
from bayplan.plugins import score_range
from bayplan.state.arrays import Flags, Ints
from bayplan.state.columns import Columns


class StretchedScoreRule(ScoreRule):
    """Base of rules whose scale is the largest raw score of the feasible nodes, at least 0.

    Args:
        columns: the columns of the cluster.
        reverse: whether the largest raw score becomes 0, and no raw score 100.
    """

    def __init__(self, columns: Columns, *, reverse: bool = False) -> None:
        super().__init__(columns)
        self.normalizes = True
        self.reverse = reverse

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest raw score."""
        return (int(max(score_range.largest_score(raw, feasible, self.columns.count), 0)),)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the share of the largest in percent; if that is 0, scores are unchanged (or, if reversed, 100)."""
        largest = scale[0]
        return stretched(raw, largest, self.reverse)

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Normalise all rows: once for each raw score if there are fewer than rows."""
        largest, count = scale[0], self.columns.count
        first = score_range.lowest(raw, count)
        distinct = go.sub(score_range.highest(raw, count), first) + 1
        if 0 < distinct < count:
            table = np.empty(distinct, dtype=np.int64)
            values = table
            for place in range(distinct):
                values[place] = stretched(first + place, largest, self.reverse)
            score_range.look_up(raw, first, values, normalized, count)
        else:
            for row in range(count):
                normalized[row] = stretched(raw[row], largest, self.reverse)


def stretched(raw: int, largest: int, reverse: bool) -> int:
    """Return the share of the largest in percent, or what is left of 100."""
    if largest == 0:
        return MAX_NODE_SCORE if reverse else raw
    share = go.quotient(go.mul(raw, MAX_NODE_SCORE), largest)
    return MAX_NODE_SCORE - share if reverse else share
