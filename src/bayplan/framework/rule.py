"""What one plugin says about one node, for one compiled pod: the rules that the engine asks.

A rule has one body, about one node: `filter(row)` or `score(row)`. It never knows why it is asked: for all rows, for a row that
changed, or while pods are moved for a dry run. A rule that depends on something about the cluster as a whole (the smallest domain
of a topology key, say) reads that in `refresh`, and says there whether it moved.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np

from bayplan.state.arrays import Codes, Flags, Index, Ints
from bayplan.state.columns import Columns

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0

Params: TypeAlias = tuple[Hashable, ...]
"""What a plugin computed about the cluster for this cycle; compared by value to decide whether cached results still hold."""

Scale: TypeAlias = tuple[Any, ...]
"""What `ScoreRule.scale` found, for `normalize`."""


class Rule:
    """Base of `FilterRule` and `ScoreRule`.

    Args:
        columns: of the cluster.

    Attributes:
        params: what PreFilter, PreScore or `observe` found in this cycle; None if the profile leaves that plugin out.
        looks_at_pods: whether the rule looks at the pods of nodes themselves, not only at columns and counters.
        reads_others: whether what the rule says of a row may depend on pods of other rows.
        asks_arrays: whether asking about many rows at once costs hardly more than asking about one.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.params: Params | None = ()
        self.asks_arrays = False
        self.looks_at_pods = False
        self.reads_others = False

    def bind(self) -> None:
        """Look up again what depends on the nodes and on the arrays; called when `Columns.version` has moved."""

    def refresh(self) -> bool:
        """Read what the rule needs of the cluster as a whole; return whether every row must be asked again.

        Called once before rows are asked, in each cycle and after each change of a dry run.
        """
        return False

    def after_changes(self, params: Params | None) -> None:
        """Read again what the rule needs of the cluster: pods were added or removed on trial since PreFilter gave `params`."""
        self.refresh()

    def before_changes(self, params: Params | None) -> None:
        """Go back to `params`: the trial is over, or about to be."""
        self.refresh()


class FilterRule(Rule):
    """Whether a node can hold the pod."""

    def filter(self, row: int) -> int:
        """Return the verdict about a row: 0 passes, the plugin's `reasons` explain the other values (uint16)."""
        raise TypeError(f"{type(self).__name__} lacks filter()")

    def filter_all(self, codes: Codes) -> None:
        """Write the verdicts of all rows in use into uint16[capacity]. A freed row may get any verdict."""
        for row in range(self.columns.count):
            codes[row] = self.filter(row)

    def filter_rows(self, rows: list[int], codes: Codes) -> None:
        """Write the verdicts of some rows into uint16[capacity]."""
        for row in rows:
            codes[row] = self.filter(row)


class ScoreRule(Rule):
    """How well a node suits the pod.

    Attributes:
        normalizes: whether raw scores are brought to 0..100 by `normalize`, with a scale found over the feasible rows.
        reads_feasible: whether raw scores depend on which nodes are feasible; then `prepare` comes before every use.
    """

    normalizes: bool
    reads_feasible: bool

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.normalizes = False
        self.reads_feasible = False

    def prepare(self, feasible: Flags) -> None:
        """Read what the rule needs to know of the feasible rows (uint8[capacity]); called only if `reads_feasible`."""

    def score(self, row: int) -> int:
        """Return the raw score of a row (int64)."""
        raise TypeError(f"{type(self).__name__} lacks score()")

    def score_all(self, raw: Ints) -> None:
        """Write the raw scores of all rows in use into int64[capacity]. A freed row may get any score."""
        for row in range(self.columns.count):
            raw[row] = self.score(row)

    def score_rows(self, rows: list[int], raw: Ints) -> None:
        """Write the raw scores of some rows into int64[capacity]."""
        for row in rows:
            raw[row] = self.score(row)

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return what normalising needs of the raw scores of the feasible rows.

        Args:
            raw: int64[capacity]. feasible: uint8[capacity], true in at least one row.
        """
        raise TypeError(f"{type(self).__name__} lacks scale()")

    def level(self, scale: Scale) -> int:
        """Return the normalised score of all feasible rows if it follows from the scale alone; else -1."""
        return -1

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the normalised score of a row with this raw score."""
        raise TypeError(f"{type(self).__name__} lacks normalize()")

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Write the normalised scores of all rows in use into int64[capacity]."""
        for row in range(self.columns.count):
            normalized[row] = self.normalize(scale, raw[row], row)


def ready(rule: Rule, params: Params | None, columns: Columns) -> None:
    """Prepare a rule that nobody has asked yet."""
    rule.columns = columns
    rule.params = params
    rule.bind()
    rule.refresh()


def verdicts_of(rule: FilterRule, params: Params | None, columns: Columns, rows: Index) -> Codes:
    """Return uint16, what a new rule says of some rows (intp)."""
    ready(rule, params, columns)
    return np.array([rule.filter(row) for row in rows.tolist()], dtype=np.uint16)


def scores_of(rule: ScoreRule, params: Params | None, columns: Columns, rows: Index) -> Ints:
    """Return int64, the raw scores that a new rule gives some rows (intp), all nodes being feasible."""
    ready(rule, params, columns)
    if rule.reads_feasible:
        rule.prepare(columns.alive)
    return np.array([rule.score(row) for row in rows.tolist()], dtype=np.int64)
