"""Normalisation of scores, and the range of raw scores: loops over all rows that several plugins share. Not a plugin."""

from __future__ import annotations

import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.framework.rule import MAX_NODE_SCORE, Params, Scale, ScoreRule
from bayplan.state.arrays import Flags, Ints
from bayplan.state.columns import Columns


class ScaledScoreRule(ScoreRule):
    """Base of rules whose `normalize` depends on the raw score alone, not on the row."""

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Normalise all rows: each raw score once if there are fewer of them than rows."""
        count = self.columns.count
        first = lowest(raw, count)
        distinct = go.sub(highest(raw, count), first) + 1
        if not 0 < distinct < count:
            ScoreRule.normalize_all(self, scale, raw, normalized)
            return
        table = np.zeros(distinct, dtype=np.int64)
        scores = table
        for row in range(count):
            scores[raw[row] - first] = 1
        for place in range(distinct):
            if scores[place]:
                scores[place] = self.normalize(scale, first + place, 0)
        for row in range(count):
            normalized[row] = scores[raw[row] - first]


class StretchedScoreRule(ScaledScoreRule):
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
        return (int(max(largest_score(raw, feasible, self.columns.count), 0)),)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the share of the largest in percent; if that is 0, scores are unchanged (or, if reversed, 100)."""
        largest = scale[0]
        if largest == 0:
            return MAX_NODE_SCORE if self.reverse else raw
        share = go.quotient(go.mul(raw, MAX_NODE_SCORE), largest)
        return MAX_NODE_SCORE - share if self.reverse else share


MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)
_MAX, _MIN = MAX_INT64, MIN_INT64


def smallest_score(raw: Ints, chosen: Flags, count: int) -> int:
    """Return the smallest raw score (int64) of the chosen rows (uint8) below `count`; the largest int64 if none is chosen."""
    smallest = _MAX
    for row in range(count):
        score = raw[row] if chosen[row] else _MAX
        smallest = score if score < smallest else smallest
    return smallest


def largest_score(raw: Ints, chosen: Flags, count: int) -> int:
    """Return the largest raw score of the chosen rows, likewise; the smallest int64 if there are none."""
    largest = _MIN
    for row in range(count):
        score = raw[row] if chosen[row] else _MIN
        largest = score if score > largest else largest
    return largest


def lowest(raw: Ints, count: int) -> int:
    """Return the smallest of the first `count` raw scores."""
    smallest = _MAX
    for row in range(count):
        smallest = raw[row] if raw[row] < smallest else smallest
    return smallest


def highest(raw: Ints, count: int) -> int:
    """Return the largest of the first `count` raw scores."""
    largest = _MIN
    for row in range(count):
        largest = raw[row] if raw[row] > largest else largest
    return largest
