"""Plugins whose PreFilter or PreScore returns a wrong value: the error names the expected type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from bayplan.base.errors import PluginError
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, Plugin, PreFilterPlugin, PreFilterResult, PreScorePlugin, ScorePlugin
from bayplan.framework.status import SUCCESS, Status
from bayplan.library import Cluster
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.builders import make_node, make_pod


@dataclass(frozen=True)
class Nothing:
    key: tuple[()] = ()


class SaysSuccess(PreFilterPlugin[Nothing]):
    def compile(self, pod: Pod, cluster: ClusterState) -> Nothing:
        return Nothing()

    def pre_filter(self, spec: Nothing, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        return SUCCESS


class SaysNothing(SaysSuccess):
    def pre_filter(self, spec: Nothing, cluster: ClusterState, state: CycleState) -> Any:
        return None


class ScoresWithSuccess(PreScorePlugin[Nothing], ScorePlugin[Nothing]):
    def compile(self, pod: Pod, cluster: ClusterState) -> Nothing:
        return Nothing()

    def pre_score(self, spec: Nothing, cluster: ClusterState, feasible: Bools) -> Params | Status:
        return SUCCESS

    def score(self, spec: Nothing, params: Params | None, rows: Rows) -> Ints:
        return np.zeros(len(rows), dtype=np.int64)


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(
            SaysSuccess,
            "SaysSuccess.pre_filter: expected a PreFilterResult, or a Status that skips or rejects, got a Status of Success; "
            "try 'return PROCEED' (bayplan.framework.plugin) if the pod may proceed",
            id="PreFilter returns Success",
        ),
        pytest.param(SaysNothing, "SaysNothing.pre_filter: expected a PreFilterResult", id="PreFilter returns None"),
        pytest.param(
            ScoresWithSuccess,
            "ScoresWithSuccess.pre_score: expected params, or a Status that skips or fails, got a Status of Success; "
            "try 'return ()' if there are no params",
            id="PreScore returns Success",
        ),
    ],
)
def test_a_meaningless_plugin_result_raises_plugin_error(plugin: type[Plugin[Any]], want: str) -> None:
    nodes = [make_node(name).capacity(cpu="4").obj() for name in ("a", "b")]
    cluster = Cluster(nodes, plugins=[plugin])
    with pytest.raises(PluginError) as raised:
        cluster.schedule(make_pod("p").obj())
    assert want in str(raised.value)
