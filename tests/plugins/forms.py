"""Evaluate a plugin for all nodes at once and for one node at a time, and check that the results agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    NormalizePlugin,
    Params,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from bayplan.framework.rule import ready
from bayplan.framework.status import Code, Status, verdict_code
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.row_results import scores_of, verdicts_of

Verdict = tuple[str, tuple[str, ...]]
"""The status code and the reasons."""


def pre_filter(plugin: PreFilterPlugin[Any], pod: Pod, state: ClusterState) -> PreFilterResult | Status:
    """Return the result of PreFilter."""
    return plugin.pre_filter(plugin.compile(pod, state), state, CycleState())


def filters(plugin: FilterPlugin[Any], pod: Pod, state: ClusterState, params: Params | None = ()) -> dict[str, Verdict]:
    """Return the code and the reasons of each node that the plugin rejects."""
    spec = plugin.compile(pod, state)
    everything = verdicts_of(plugin, spec, params, Rows(state))
    assert everything.dtype == np.uint16
    found: dict[str, Verdict] = {}
    for name, row in state.nodes.row_of.items():
        verdict = int(everything[row])
        one = verdicts_of(plugin, spec, params, Rows(state, np.array([row], dtype=np.intp)))
        assert one.dtype == np.uint16
        assert int(one[0]) == verdict
        if verdict:
            found[name] = verdict_code(verdict).text, plugin.reasons(spec, params, verdict)
    return found


def scores(plugin: ScorePlugin[Any], pod: Pod, state: ClusterState, params: Params | None = ()) -> dict[str, int]:
    """Return the raw score of each node."""
    spec = plugin.compile(pod, state)
    everything = scores_of(plugin, spec, params, Rows(state))
    assert everything.dtype == np.int64
    found: dict[str, int] = {}
    for name, row in state.nodes.row_of.items():
        found[name] = int(everything[row])
        one = scores_of(plugin, spec, params, Rows(state, np.array([row], dtype=np.intp)))
        assert one.dtype == np.int64
        assert int(one[0]) == found[name]
    return found


def normalized(plugin: NormalizePlugin[Any], pod: Pod, state: ClusterState) -> dict[str, int]:
    """Return the normalized score of each node, with all nodes feasible."""
    spec = plugin.compile(pod, state)
    return dict(scored(plugin, spec, (), state, state.nodes.alive[: state.nodes.count])[1])


def scored(
    plugin: NormalizePlugin[Any], spec: Any, params: Params, state: ClusterState, feasible: Bools
) -> tuple[dict[str, int], dict[str, int]]:
    """Return raw and normalized scores of the feasible nodes, computed for all rows at once and for each row."""
    rule, capacity = plugin.score_rule(spec, state), state.columns.capacity
    chosen: Any = np.zeros(capacity, dtype=np.uint8)
    chosen[: len(feasible)] = feasible
    ready(rule, params, state.columns)
    if rule.reads_feasible:
        rule.prepare(chosen)
    raw: Ints = np.zeros(capacity, dtype=np.int64)
    final: Ints = np.zeros(capacity, dtype=np.int64)
    rule.score_all(raw)
    scale = rule.scale(raw, chosen)
    rule.normalize_all(scale, raw, final)
    places = {name: row for name, row in state.nodes.row_of.items() if feasible[row]}
    for row in places.values():
        assert rule.score(row) == raw[row]
        assert rule.normalize(scale, int(raw[row]), row) == final[row]
    return (
        {name: int(raw[row]) for name, row in places.items()},
        {name: int(final[row]) for name, row in places.items()},
    )


def skips_score(plugin: PreScorePlugin[Any], pod: Pod, state: ClusterState) -> bool:
    """Return whether PreScore returns Skip."""
    answer = plugin.pre_score(plugin.compile(pod, state), state, state.nodes.alive[: state.nodes.count])
    return isinstance(answer, Status) and answer.code is Code.SKIP
