"""Rules: the verdict or score of one node for one compiled pod.

A rule has one body, `filter(row)` or `score(row)`, which runs for all rows, for a row that changed, or while a dry run
moves pods. What it needs of the whole cluster, such as the smallest domain of a topology key, it reads in `refresh`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

from bayplan.state.arrays import Codes, Flags, Index, Ints
from bayplan.state.columns import Columns

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0

Params: TypeAlias = tuple[Hashable, ...]
"""A plugin's data about the cluster in this cycle. Cached results are valid as long as params are equal."""

Scale: TypeAlias = tuple[Any, ...]
"""The result of `ScoreRule.scale`, passed to `normalize`."""


class Rule:
    """Base of `FilterRule` and `ScoreRule`.

    Attributes:
        params: the result of PreFilter, PreScore or `observe` in this cycle; None if the profile disables the plugin's
            PreFilter or PreScore.
        reads_pods: whether the rule reads single pods on nodes, not just columns and counters.
        reads_others: whether the result for a row may depend on pods of other rows.
        evaluates_arrays: whether the rule evaluates many rows in one call at little more than the cost of one row.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.params: Params | None = ()
        self.evaluates_arrays = False
        self.reads_pods = False
        self.reads_others = False

    def bind(self) -> None:
        """Refresh all references to nodes and arrays; called when `Columns.version` has changed."""

    def refresh(self) -> bool:
        """Read the data about the whole cluster that the rule needs; return whether every row must be evaluated again.

        Called before rows are evaluated, in each cycle and after each change of a dry run.
        """
        return False

    def after_changes(self, params: Params | None) -> None:
        """Read the cluster again, because pods were added or removed temporarily since PreFilter returned `params`."""
        self.refresh()

    def after_undo(self, params: Params | None) -> None:
        """Read the cluster again, because all pods have been moved back; `params` is valid again."""
        self.refresh()


class FilterRule(Rule):
    """A rule that decides whether a node can run the pod."""

    def filter(self, row: int) -> int:
        """Return the verdict for a row as uint16: 0 if the node passes, else a value that `reasons` of the plugin explains."""
        raise TypeError(f"{type(self).__name__} lacks filter()")

    def filter_all(self, codes: Codes) -> None:
        """Write the verdicts of all rows in use into uint16[capacity]. A freed row may get any verdict."""
        for row in range(self.columns.count):
            codes[row] = self.filter(row)

    def filter_rows(self, rows: list[int], codes: Codes) -> None:
        """Write the verdicts of these rows into uint16[capacity]."""
        for row in rows:
            codes[row] = self.filter(row)


class ScoreRule(Rule):
    """A rule that scores nodes for the pod.

    Attributes:
        normalizes: whether `normalize` maps raw scores to 0..100, with a scale computed over the feasible rows.
        reads_feasible: whether raw scores depend on which nodes are feasible; then `prepare` is called before every
            use.
    """

    normalizes: bool
    reads_feasible: bool

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.normalizes = False
        self.reads_feasible = False

    def prepare(self, feasible: Flags) -> None:
        """Read the data about the feasible rows (uint8[capacity]) that the rule needs. Called only if `reads_feasible`."""

    def score(self, row: int) -> int:
        """Return the raw score of a row (int64)."""
        raise TypeError(f"{type(self).__name__} lacks score()")

    def score_all(self, raw: Ints) -> None:
        """Write the raw scores of all rows in use into int64[capacity]. A freed row may get any score."""
        for row in range(self.columns.count):
            raw[row] = self.score(row)

    def score_rows(self, rows: list[int], raw: Ints) -> None:
        """Write the raw scores of these rows into int64[capacity]."""
        for row in rows:
            raw[row] = self.score(row)

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the data that normalisation needs of the feasible rows' raw scores.

        `raw` is int64[capacity], `feasible` uint8[capacity] and true in at least one row.
        """
        raise TypeError(f"{type(self).__name__} lacks scale()")

    def level(self, scale: Scale) -> int:
        """Return the normalised score of all feasible rows if the scale alone determines it; else -1."""
        return -1

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the normalised score of a row with this raw score."""
        raise TypeError(f"{type(self).__name__} lacks normalize()")

    def normalize_all(self, scale: Scale, raw: Ints, normalized: Ints) -> None:
        """Write the normalised scores of all rows in use into int64[capacity]."""
        for row in range(self.columns.count):
            normalized[row] = self.normalize(scale, raw[row], row)

    def normalize_rows(self, scale: Scale, raw: Ints, rows: Index, count: int, normalized: Ints) -> None:
        """Write the normalised scores of the first `count` elements of `rows` (intp); other values are undefined."""
        self.normalize_all(scale, raw, normalized)


def ready(rule: Rule, params: Params | None, columns: Columns) -> None:
    """Bind and refresh a new rule before its first use."""
    rule.columns = columns
    rule.params = params
    rule.bind()
    rule.refresh()
