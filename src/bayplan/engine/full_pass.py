"""Scores computed without caches, for feasible nodes other than the plan's; also the reference for cached scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayplan.engine.plan import Plan, invalid_score, score_error
from bayplan.engine.preparation import PreScores
from bayplan.engine.rule_result import ScoreResult
from bayplan.framework.plugin import Params, ScorePlugin
from bayplan.framework.status import Status
from bayplan.state.arrays import Bools, Ints


@dataclass
class PluginScores:
    """The result of one score plugin: its weight, and int64[rows] raw and normalised scores, defined for feasible rows.

    `plugin` and `spec` identify the source of the raw scores, `scale` the normalisation (None without one).
    """

    weight: int
    raw: Ints
    normalized: Ints
    plugin: ScorePlugin[Any]
    spec: Any
    scale: Params | None


@dataclass
class ScoreTable:
    """Scores of all plugins over a set of feasible nodes.

    Attributes:
        scores: the scores by plugin, in order, without the plugins whose PreScore returned Skip (`skipped`).
        total: int64[rows], the weighted sums; -1 if not feasible.
        failure: the Error that ended scoring, or None.
    """

    scores: dict[str, PluginScores] = field(default_factory=dict)
    total: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    skipped: list[str] = field(default_factory=list)
    failure: Status | None = None


def score_over(plan: Plan, feasible: Bools, *, bare: bool = False) -> ScoreTable:
    """Score a plan's pod over the feasible rows (bool[rows], at least one true), without using caches.

    `bare`: ignore pods and images on nodes (see `ClusterState.without_pods_and_images`).
    """
    state, profile = plan.state, plan.profile
    table = ScoreTable()
    capacity, count = state.nodes.capacity, state.nodes.count
    chosen = np.zeros(capacity, dtype=np.bool_)
    chosen[:count] = feasible[:count]
    flags = chosen.view(np.uint8)
    prepared = PreScores(profile, plan.specs, state).refresh(chosen)
    table.failure = prepared.status
    if table.failure is not None:
        return table
    table.skipped = sorted(prepared.skipped)
    cluster = state.without_pods_and_images() if bare else state
    total = np.zeros(capacity, dtype=np.int64)
    if not profile.score:
        total[:] = 1
    for entry in profile.score:
        if entry.plugin.name in prepared.skipped:
            continue
        result = ScoreResult(entry.plugin, plan.specs[entry.plugin.name], cluster)
        params = plan.score_params(result, prepared)
        table.failure = score_error(result, params)
        if table.failure is not None:
            return table
        result.refresh(params, flags)
        scale = result.score_rule.scale(result.raw, flags) if result.score_rule.normalizes else None
        normalized = result.normalized(scale)
        table.scores[result.name] = PluginScores(
            entry.weight, result.values[:count], normalized[:count], entry.plugin, result.spec, scale
        )
        total += entry.weight * normalized
    total[~chosen] = -1
    table.total = total[:count]
    scores = ((name, scores.normalized) for name, scores in table.scores.items())
    table.failure = invalid_score(state, scores, chosen[:count])
    return table
