"""The NormalizeScore that several plugins share: raw scores stretched so that the largest becomes 100.

Written in the two halves that the framework asks for (`bayplan.framework.plugin.NormalizePlugin`). Not a plugin.
"""

from __future__ import annotations

from bayplan.framework.plugin import MAX_NODE_SCORE, Params
from bayplan.state.arrays import Ints
from bayplan.state.views import Rows


def largest_score(raw: Ints) -> Params:
    """Return the largest raw score of the feasible nodes, at least 0: the scale of `stretched` and `stretched_down`."""
    return (max(0, raw.max().item()),)


def stretched(scale: Params, raw: Ints, rows: Rows) -> Ints:
    """Return scores of which the largest is 100; all stay as they are where the largest is 0."""
    (largest,) = scale
    assert isinstance(largest, int)
    return rows.quotient(rows.wrap(raw * MAX_NODE_SCORE), largest) if largest else raw


def stretched_down(scale: Params, raw: Ints, rows: Rows) -> Ints:
    """Return scores of which the one with the largest raw score is 0; all are 100 where the largest is 0."""
    (largest,) = scale
    assert isinstance(largest, int)
    if not largest:
        return raw * 0 + MAX_NODE_SCORE
    return MAX_NODE_SCORE - rows.quotient(rows.wrap(raw * MAX_NODE_SCORE), largest)
