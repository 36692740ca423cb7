"""Base classes of score rules with normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.base.go_arithmetic import MAX_INT64, MIN_INT64
from bayplan.framework.array_rule import ArrayScoreRule
from bayplan.framework.plugin import ScorePlugin
from bayplan.framework.rule import MAX_NODE_SCORE, Params, Scale, ScoreRule
from bayplan.state.arrays import Flags, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import Columns

RAW_SCORES = 256
"""Number of raw scores whose normalised scores are cached at a time. Must be a power of two."""

_PLACES = RAW_SCORES - 1


class ScaledScoreRule(ScoreRule):
    """Base of rules whose `normalize` depends only on the raw score, not on the row.

    Many nodes have equal raw scores, so a small table, indexed by the last bits of raw scores, caches normalised scores.
    """

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self._raw_scores: Any = np.zeros(RAW_SCORES, dtype=np.int64)
        self._normalized: Any = np.zeros(RAW_SCORES, dtype=np.int64)

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Write the normalised scores of all rows."""
        self.normalize_rows(scale, raw, None, self.columns.count, normalized)

    def normalize_rows(self, scale: Scale, raw: Ints, rows: Index | None, count: int, normalized: Ints) -> None:
        """Normalise the first `count` elements of `rows`, or the first `count` rows if `rows` is None."""
        known, scores = self._raw_scores, self._normalized
        for place in range(RAW_SCORES):
            # A raw score that belongs in another place: the place is empty.
            known[place] = place + 1
        if rows is None:
            for row in range(count):
                score = raw[row]
                place = score & _PLACES
                if known[place] != score:
                    known[place], scores[place] = score, self.normalize(scale, score, 0)
                normalized[row] = scores[place]
            return
        for number in range(count):
            row = rows[number]
            score = raw[row]
            place = score & _PLACES
            if known[place] != score:
                known[place], scores[place] = score, self.normalize(scale, score, 0)
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
        return (max(score_range(raw, feasible, self.columns.count)[1], 0),)

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the raw score as a percentage of the largest; if that is 0, the raw score itself (100 if reversed)."""
        largest = scale[0]
        if largest == 0:
            return MAX_NODE_SCORE if self.reverse else raw
        share = go.quotient(go.mul(raw, MAX_NODE_SCORE), largest)
        return MAX_NODE_SCORE - share if self.reverse else share


class StretchedArrayRule(StretchedScoreRule):
    """Stretches the scores that a plugin computes for arrays of rows, with `ScorePlugin.score`."""

    def __init__(self, plugin: ScorePlugin[Any], spec: Any, cluster: ClusterState, *, reverse: bool = False) -> None:
        super().__init__(cluster.columns, reverse=reverse)
        self.evaluates_arrays = True
        self._rule = ArrayScoreRule(plugin, spec, cluster)

    def score(self, row: int) -> int:
        """Return the raw score of a row."""
        return self._with_params().score(row)

    def score_all(self, raw: Ints) -> None:
        """Write the raw scores of all rows."""
        self._with_params().score_all(raw)

    def score_rows(self, rows: list[int], raw: Ints) -> None:
        """Write the raw scores of these rows with one call of the plugin."""
        self._with_params().score_rows(rows, raw)

    def _with_params(self) -> ArrayScoreRule:
        """Return the rule that computes the raw scores, with this cycle's params."""
        self._rule.params = self.params
        return self._rule


def score_range(raw: Ints, chosen: Flags, count: int) -> tuple[int, int]:
    """Return the smallest and the largest raw score (int64) of the chosen rows (uint8) below `count`.

    Without chosen rows, these are the largest and the smallest int64.
    """
    smallest, largest = MAX_INT64, MIN_INT64
    for row in range(count):
        score = raw[row] if chosen[row] else MAX_INT64
        smallest = score if score < smallest else smallest
        score = raw[row] if chosen[row] else MIN_INT64
        largest = score if score > largest else largest
    return int(smallest), int(largest)
