"""Scores computed without caches, for feasible nodes other than the plan's; also the reference for cached scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayplan.engine.plan import Plan, invalid_score
from bayplan.engine.preparation import failed_pre_score
from bayplan.framework.plugin import Params, PreScorePlugin, ScorePlugin
from bayplan.framework.rule import ready
from bayplan.framework.status import Code, Status, error
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
    feasible = feasible[: state.nodes.count]
    params: dict[str, Params] = {}
    # Without scoring, PreScore plugins don't run.
    for plugin in profile.pre_score if profile.score else ():
        answer = plugin.pre_score(plan.specs[plugin.name], state, feasible)
        if not isinstance(answer, Status):
            params[plugin.name] = answer
        elif answer.code is Code.SKIP:
            table.skipped.append(plugin.name)
        else:
            table.skipped.clear()
            table.failure = failed_pre_score(plugin, answer)
            return table
    cluster = state.without_pods_and_images() if bare else state
    capacity, count = state.nodes.capacity, state.nodes.count
    chosen = np.zeros(capacity, dtype=np.uint8)
    chosen[:count] = feasible
    total = np.zeros(count, dtype=np.int64)
    if not profile.score:
        total[:] = 1
    for entry in profile.score:
        scorer: Any = entry.plugin
        if scorer.name in table.skipped:
            continue
        spec = plan.specs[scorer.name]
        mine = params.get(scorer.name)
        if mine is None and not isinstance(scorer, PreScorePlugin):
            mine = scorer.observe(spec, state)
        text = scorer.score_error(spec, mine)
        if text:
            table.failure = error(f'running Score plugins: plugin "{scorer.name}" failed with: {text}').by(scorer.name)
            return table
        rule = scorer.score_rule(spec, cluster)
        ready(rule, mine, cluster.columns)
        if rule.reads_feasible:
            rule.prepare(chosen)
        raw = np.zeros(capacity, dtype=np.int64)
        rule.score_all(raw)
        normalized, scale = raw, None
        if rule.normalizes:
            scale = rule.scale(raw, chosen)
            normalized = np.zeros(capacity, dtype=np.int64)
            rule.normalize_all(scale, raw, normalized)
        scores = PluginScores(entry.weight, raw[:count], normalized[:count], scorer, spec, scale)
        table.scores[scorer.name] = scores
        total += entry.weight * scores.normalized
    total[~feasible] = -1
    table.total = total
    table.failure = invalid_score(state, ((name, scores.normalized) for name, scores in table.scores.items()), feasible)
    return table
