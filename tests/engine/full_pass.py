"""The scores of a full pass: row by row with new rules, and summed up naively. The reference for plans.

It shares only the plugins and their specs with a plan: no results, scales or totals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayplan.engine.plan import Plan
from bayplan.framework.plugin import Params, PreScorePlugin, WeightedPlugin
from bayplan.framework.rule import ready
from bayplan.framework.status import Code, Status
from bayplan.state.arrays import Bools, Ints


class Scores(NamedTuple):
    """The scores of one plugin; `raw` and `normalized` are int64[rows in use], 0 in rows that are not feasible."""

    weight: int
    raw: Ints
    normalized: Ints
    scale: Params | None


class FullPass(NamedTuple):
    """The scores by plugin, and their weighted sums: int64[rows in use], -1 if not feasible."""

    scores: dict[str, Scores]
    total: Ints


def full_pass(plan: Plan, feasible: Bools) -> FullPass:
    """Score a plan's pod over the feasible rows (bool[capacity]); no plugin may fail."""
    params, count = _params_by_scorer(plan, feasible), plan.state.nodes.count
    total = np.full(count, 0 if plan.profile.score else 1, dtype=np.int64)
    scores: dict[str, Scores] = {}
    for entry in plan.profile.score:
        name = entry.plugin.name
        if name in params:
            scores[name] = _score(plan, entry, params[name], feasible)
            total += entry.weight * scores[name].normalized
    total[~feasible[:count]] = -1
    return FullPass(scores, total)


def _params_by_scorer(plan: Plan, feasible: Bools) -> dict[str, Params | None]:
    """Return the params of each scorer that PreScore does not skip."""
    state, profile = plan.state, plan.profile
    prepared = {
        plugin.name: plugin.pre_score(plan.specs[plugin.name], state, feasible[: state.nodes.count])
        for plugin in (profile.pre_score if profile.score else ())
    }
    params: dict[str, Params | None] = {}
    for scorer in (entry.plugin for entry in profile.score):
        answer = prepared.get(scorer.name)
        if isinstance(answer, Status):
            assert answer.code is Code.SKIP, answer.message
        elif scorer.name in prepared:
            params[scorer.name] = answer or ()
        elif isinstance(scorer, PreScorePlugin):
            params[scorer.name] = None
        else:
            params[scorer.name] = scorer.observe(plan.specs[scorer.name], state)
    return params


def _score(plan: Plan, entry: WeightedPlugin, params: Params | None, feasible: Bools) -> Scores:
    """Score the feasible rows with a new rule of a plugin, one by one."""
    plugin, state = entry.plugin, plan.state
    spec = plan.specs[plugin.name]
    assert not plugin.score_error(spec, params)
    rule, flags = plugin.score_rule(spec, state), feasible.view(np.uint8)
    ready(rule, params, state.columns)
    if rule.reads_feasible:
        rule.prepare(flags)
    rows = np.flatnonzero(feasible).tolist()
    raw = np.zeros(state.nodes.capacity, dtype=np.int64)
    for row in rows:
        raw[row] = rule.score(row)
    scale, normalized = None, raw
    if rule.normalizes:
        scale, normalized = rule.scale(raw, flags), np.zeros_like(raw)
        for row in rows:
            normalized[row] = rule.normalize(scale, int(raw[row]), row)
    return Scores(entry.weight, raw[: state.nodes.count], normalized[: state.nodes.count], scale)
