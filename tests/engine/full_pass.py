"""The scores of a full pass, which shares no cached result with the plan, with a naive sum of the totals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayplan.engine.plan import Plan, score_over
from bayplan.framework.plugin import Params
from bayplan.state.arrays import Bools, Ints


class Scores(NamedTuple):
    """The scores of one plugin; `raw` and `normalized` are int64[rows in use], defined for feasible rows."""

    weight: int
    raw: Ints
    normalized: Ints
    scale: Params | None


class FullPass(NamedTuple):
    """The scores by plugin, and their weighted sums: int64[rows in use], -1 if not feasible."""

    scores: dict[str, Scores]
    total: Ints


def scores_of(plan: Plan) -> dict[str, Scores]:
    """Return the scores of a plan by plugin."""
    totals, count = plan.totals, plan.state.nodes.count
    return {
        result.name: Scores(
            totals.weights[number], result.values[:count], totals.normalized(number)[:count], totals.scales[number]
        )
        for number, result in enumerate(totals.results)
    }


def full_pass(plan: Plan, feasible: Bools) -> FullPass:
    """Score a plan's pod over the feasible rows (bool[capacity])."""
    found = score_over(plan, feasible)
    assert found.failure is None
    scores, count = scores_of(found), plan.state.nodes.count
    total = np.full(count, 0 if plan.profile.score else 1, dtype=np.int64)
    for each in scores.values():
        total += each.weight * each.normalized
    total[~feasible[:count]] = -1
    assert np.array_equal(total, found.totals.total[:count])
    return FullPass(scores, total)
