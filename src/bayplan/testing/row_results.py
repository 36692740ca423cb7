"""Verdicts and raw scores of a plugin for any selection of rows, by new rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework.plugin import FilterPlugin, Params, ScorePlugin
from bayplan.framework.rule import ScoreRule, ready
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.views import Rows


def verdicts_of(plugin: FilterPlugin[Any], spec: Any, params: Params | None, rows: Rows) -> Codes:
    """Return the verdicts on these rows by a new rule: for arrays of rows, or one by one."""
    rule = plugin.filter_rule(spec, rows.state)
    if rule.evaluates_arrays:
        return plugin.filter(spec, params, rows)
    ready(rule, params, rows.state.columns)
    return np.array([rule.filter(row) for row in rows.row_numbers().tolist()], dtype=np.uint16)


def scores_of(
    plugin: ScorePlugin[Any], spec: Any, params: Params | None, rows: Rows, feasible: Bools | None = None
) -> Ints:
    """Return the raw scores of these rows by a new rule: for arrays of rows, or one by one.

    `feasible`: the feasible nodes; by default all.
    """
    rule = plugin.score_rule(spec, rows.state)
    return plugin.score(spec, params, rows) if rule.evaluates_arrays else scores_by(rule, params, rows, feasible)


def scores_by(rule: ScoreRule, params: Params | None, rows: Rows, feasible: Bools | None = None) -> Ints:
    """Return the raw scores of these rows by a new rule, one by one; see `scores_of`."""
    ready(rule, params, rows.state.columns)
    if rule.reads_feasible:
        rule.prepare(rows.state.columns.alive if feasible is None else feasible.view(np.uint8))
    return np.array([rule.score(row) for row in rows.row_numbers().tolist()], dtype=np.int64)
