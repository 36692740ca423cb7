"""Ask a plugin about every node in every form of evaluation, and make sure that the forms agree.

The forms: all rows at once, the same gathered, for several specs at once, the states that rows are in, one row of arrays at a time,
one row of plain numbers at a time.
"""

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
from bayplan.framework.status import Code, Status, verdict_code
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.state_rows import StateRows
from bayplan.state.views import GatheredRows, Row, Rows

Verdict = tuple[str, tuple[str, ...]]
"""Code and reasons."""


def states_of(state: ClusterState) -> StateRows:
    """Return a view of the states that rows are in."""
    state.usage_states.follow()
    return StateRows(state)


def codes_of(state: ClusterState) -> Index:
    """Return the state of each row in use."""
    return state.usage_states.codes[: state.nodes.count]


def pre_filter(plugin: PreFilterPlugin[Any], pod: Pod, state: ClusterState) -> PreFilterResult | Status:
    """Return what PreFilter says."""
    return plugin.pre_filter(plugin.compile(pod, state), state, CycleState())


def filters(plugin: FilterPlugin[Any], pod: Pod, state: ClusterState, params: Params | None = ()) -> dict[str, Verdict]:
    """Return per node what the filter says; nodes that pass are left out."""
    spec = plugin.compile(pod, state)
    everything = plugin.filter(spec, params, Rows(state))
    assert everything.dtype == np.uint16
    gathered = GatheredRows(state, np.arange(state.nodes.count, dtype=np.intp))
    np.testing.assert_array_equal(plugin.filter(spec, params, gathered), everything)
    if params == ():
        together = plugin.filter_many([spec, spec], gathered)
        assert together is None or np.array_equal(together, np.stack((everything, everything)))
    if plugin.amounts_only and params == () and state.small:
        np.testing.assert_array_equal(plugin.filter(spec, params, states_of(state))[codes_of(state)], everything)
    found: dict[str, Verdict] = {}
    for name, row in state.nodes.row_of.items():
        verdict = int(everything[row])
        one = plugin.filter(spec, params, Rows(state, np.array([row], dtype=np.intp)))
        assert one.dtype == np.uint16
        assert int(one[0]) == verdict
        if plugin.scalar and state.small:
            number: object = plugin.filter(spec, params, Row(state, row))
            assert type(number) is int
            assert number == verdict
        if verdict:
            found[name] = verdict_code(verdict).text, plugin.reasons(spec, params, verdict)
    return found


def scores(plugin: ScorePlugin[Any], pod: Pod, state: ClusterState, params: Params | None = ()) -> dict[str, int]:
    """Return the raw score of every node."""
    spec = plugin.compile(pod, state)
    everything = plugin.score(spec, params, Rows(state))
    assert everything.dtype == np.int64
    gathered = GatheredRows(state, np.arange(state.nodes.count, dtype=np.intp))
    np.testing.assert_array_equal(plugin.score(spec, params, gathered), everything)
    if params == ():
        together = plugin.score_many([spec, spec], gathered)
        assert together is None or np.array_equal(together, np.stack((everything, everything)))
    if plugin.amounts_only and params == () and state.small:
        by_state = plugin.score(spec, params, states_of(state))
        assert by_state.dtype == np.int64
        np.testing.assert_array_equal(by_state[codes_of(state)], everything)
    found: dict[str, int] = {}
    for name, row in state.nodes.row_of.items():
        found[name] = int(everything[row])
        one = plugin.score(spec, params, Rows(state, np.array([row], dtype=np.intp)))
        assert one.dtype == np.int64
        assert int(one[0]) == found[name]
        if plugin.scalar and state.small:
            number: object = plugin.score(spec, params, Row(state, row))
            assert type(number) is int
            assert number == found[name]
    return found


def normalized(plugin: NormalizePlugin[Any], pod: Pod, state: ClusterState) -> dict[str, int]:
    """Return the normalised score of every node, over all of them."""
    spec = plugin.compile(pod, state)
    rows = Rows(state)
    raw = plugin.score(spec, (), rows)
    alive = state.nodes.alive[: state.nodes.count]
    scale = plugin.scale(spec, (), raw[alive])
    everything = plugin.normalize(spec, scale, raw, rows)
    found: dict[str, int] = {}
    for name, row in state.nodes.row_of.items():
        found[name] = int(everything[row])
        index = np.array([row], dtype=np.intp)
        assert int(plugin.normalize(spec, scale, raw[index], Rows(state, index))[0]) == found[name]
    return found


def skips_score(plugin: PreScorePlugin[Any], pod: Pod, state: ClusterState) -> bool:
    """Return whether PreScore takes Score out of the cycle."""
    answer = plugin.pre_score(plugin.compile(pod, state), state, state.nodes.alive[: state.nodes.count])
    return isinstance(answer, Status) and answer.code is Code.SKIP
