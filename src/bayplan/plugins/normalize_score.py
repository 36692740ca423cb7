"""Normalisation of scores, and the range of raw scores: loops over all rows that several plugins share.

This module is not a plugin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.framework.rule import MAX_NODE_SCORE, Params, Scale, ScoreRule
from bayplan.state.arrays import Flags, Index, Ints
from bayplan.state.columns import Columns

RAW_SCORES = 256
"""Number of raw scores whose normalised scores are cached at a time. Must be a power of two."""

_PLACES = RAW_SCORES - 1


class ScaledScoreRule(ScoreRule):
    """Base of rules whose `normalize` depends only on the raw score, not on the row.

    Many nodes have equal raw scores, so normalised scores are cached in a small table, indexed by the last bits of raw
    scores.
    """

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self._raw_scores: Any = np.zeros(RAW_SCORES, dtype=np.int64)
        self._normalized: Any = np.zeros(RAW_SCORES, dtype=np.int64)

    def _clear_table(self) -> None:
        for place in range(RAW_SCORES):
            # A value that does not belong in this place: no raw score with these last bits is cached yet.
            self._raw_scores[place] = place + 1

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Write the normalised scores of all rows."""
        self.normalize_rows(scale, raw, None, self.columns.count, normalized)

    def normalize_rows(self, scale: Scale, raw: Ints, rows: Index | None, count: int, normalized: Ints) -> None:
        """Normalise the first `count` elements of `rows`, or the first `count` rows if `rows` is None."""
        self._clear_table()
        known, scores = self._raw_scores, self._normalized
        for number in range(count):
            row = number if rows is None else rows[number]
            score = raw[row]
            place = score & _PLACES
            if known[place] != score:
                known[place] = score
                scores[place] = self.normalize(scale, score, 0)
            normalized[row] = scores[place]


class StretchedScoreRule(ScaledScoreRule):
    """Base of rules whose scale is the largest raw score of the feasible nodes, at least 0.

    Args:
        columns: the columns of the cluster.
        reverse: whether the largest raw score becomes 0, and the raw score 0 becomes 100.
    """

    def __init__(self, columns: Columns, *, reverse: bool = False) -> None:
        super().__init__(columns)
        self.normalizes = True
        self.reverse = reverse

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest raw score of the feasible rows."""
        return (int(max(largest_score(raw, feasible, self.columns.count), 0)),)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the raw score as a percentage of the largest; if that is 0, the raw score itself (100 if reversed)."""
        largest = scale[0]
        if largest == 0:
            return MAX_NODE_SCORE if self.reverse else raw
        share = go.quotient(go.mul(raw, MAX_NODE_SCORE), largest)
        return MAX_NODE_SCORE - share if self.reverse else share


MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)
_MAX, _MIN = MAX_INT64, MIN_INT64


def score_range(raw: Ints, chosen: Flags, count: int) -> tuple[int, int]:
    """Return the smallest and the largest raw score (int64) of the chosen rows (uint8) below `count`.

    Without chosen rows, these are the largest and the smallest int64.
    """
    smallest, largest = _MAX, _MIN
    for row in range(count):
        score = raw[row] if chosen[row] else _MAX
        smallest = score if score < smallest else smallest
        score = raw[row] if chosen[row] else _MIN
        largest = score if score > largest else largest
    return int(smallest), int(largest)


def largest_score(raw: Ints, chosen: Flags, count: int) -> int:
    """Return the largest raw score of the chosen rows below `count`; the smallest int64 if there are none."""
    largest = _MIN
    for row in range(count):
        score = raw[row] if chosen[row] else _MIN
        largest = score if score > largest else largest
    return largest
