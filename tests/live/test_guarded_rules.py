"""A server calls the plugin worker once for each pass, not once for each node, for all kinds of plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import pytest

from bayplan.base.errors import PluginFailure
from bayplan.engine.rule_result import FilterResult, ScoreResult
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import FilterPlugin, Handle, NormalizePlugin, Params, Plugin, Reads
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.live.plugin_guard import guard
from bayplan.live.plugin_runner import PluginRunner
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.testing.builders import make_node, make_pod

T = TypeVar("T")


class CountingRunner(PluginRunner):
    """Counts calls by extension point."""

    def __init__(self) -> None:
        super().__init__(deadline_seconds=5)
        self.calls: Counter[str] = Counter()

    def call(self, plugin: str, point: str, function: Callable[..., T], *arguments: Any) -> T:
        self.calls[point] += 1
        return super().call(plugin, point, function, *arguments)


@dataclass(frozen=True)
class Spec:
    key: int = 0


class CrowdRule(FilterRule):
    limit = 1

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.columns)
        self.state = state

    def filter(self, row: int) -> int:
        if self.limit < 0:
            raise KeyError("limit")
        return 1 if len(self.state.pods_on[row]) > self.limit else 0


class CrowdScore(ScoreRule):
    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.columns)
        self.normalizes = True
        self.state = state

    def score(self, row: int) -> int:
        return len(self.state.pods_on[row])

    def scale(self, raw: Ints, feasible: Any) -> Params:
        return (max(1, *np.asarray(raw).tolist()),)

    def normalize(self, scale: Params, raw: int, row: int) -> int:
        (most,) = scale
        assert isinstance(most, int)
        return 100 * raw // most


class ByRule(FilterPlugin[Spec], NormalizePlugin[Spec]):
    name = "ByRule"
    reads: ClassVar[Reads] = Reads.NODES | Reads.USAGE

    def compile(self, pod: Pod, cluster: ClusterState) -> Spec:
        return Spec()

    def filter_rule(self, spec: Spec, cluster: ClusterState) -> FilterRule:
        return CrowdRule(cluster)

    def score_rule(self, spec: Spec, cluster: ClusterState) -> ScoreRule:
        return CrowdScore(cluster)

    def reasons(self, spec: Spec, params: Params | None, verdict: int) -> tuple[str, ...]:
        return ("node(s) were crowded",)


class ByNode(PerNodePlugin):
    name = "ByNode"
    reads: ClassVar[Reads] = Reads.NODES | Reads.USAGE

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        return "node(s) were crowded" if len(node.pods) > 1 else None

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        return len(node.pods)


def guarded(kind: type[Plugin[Any]], runner: PluginRunner, nodes: int) -> tuple[Any, ClusterState]:
    state = ClusterState()
    for number in range(nodes):
        state.add_node(make_node(f"n{number}").capacity(cpu="8", memory="8Gi").obj())
    plugin: Any = kind(None, Handle(state, FeatureGates.from_mapping({})))
    guard(plugin, runner)
    return plugin, state


@pytest.mark.parametrize("kind", [ByRule, ByNode], ids=["a rule of its own", "one method for each node"])
def test_guarded_rules_need_few_calls_per_pass(kind: type[Plugin[Any]]) -> None:
    runner = CountingRunner()
    plugin, state = guarded(kind, runner, nodes=200)
    spec = plugin.compile(make_pod("p").obj(), state)
    verdicts = FilterResult(plugin, spec, state)
    scores = ScoreResult(plugin, spec, state)
    for count in (0, 3):
        for number in range(2 * count):
            state.place(state.pod_info(make_pod(f"p{number}").obj()), number // 2)
        runner.calls.clear()
        verdicts.refresh((), None)
        scores.refresh((), None)
        assert runner.calls["Filter"] <= 3
        assert runner.calls["Score"] <= 3
        assert verdicts.values[:200].tolist() == [1] * count + [0] * (200 - count)
        assert scores.values[:200].tolist() == [2] * count + [0] * (200 - count)
    runner.close()


@pytest.mark.parametrize(
    ("method", "result", "want"),
    [("filter_rule", FilterResult, "Filter"), ("score_rule", ScoreResult, "Score")],
    ids=["filter", "score"],
)
def test_a_method_that_returns_no_rule_is_a_plugin_failure(
    monkeypatch: pytest.MonkeyPatch, method: str, result: type[Any], want: str
) -> None:
    monkeypatch.setattr(ByRule, method, lambda *_: None)
    runner = CountingRunner()
    plugin, state = guarded(ByRule, runner, nodes=1)
    spec = plugin.compile(make_pod("p").obj(), state)
    with pytest.raises(PluginFailure, match=rf"{method}\(\) returned None, expected a {want}Rule"):
        result(plugin, spec, state)
    runner.close()


def test_an_exception_in_a_rule_is_a_plugin_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CountingRunner()
    plugin, state = guarded(ByRule, runner, nodes=3)
    spec = plugin.compile(make_pod("p").obj(), state)
    verdicts = FilterResult(plugin, spec, state)
    verdicts.refresh((), None)
    state.place(state.pod_info(make_pod("a").obj()), 1)
    state.place(state.pod_info(make_pod("b").obj()), 1)
    monkeypatch.setattr(CrowdRule, "limit", -1)
    with pytest.raises(PluginFailure, match=r'running Filter plugin "ByRule": KeyError: .limit. \(test_guarded_rules'):
        verdicts.refresh((), None)
    assert verdicts.values[:3].tolist() == [0, 0, 0]
    monkeypatch.setattr(CrowdRule, "limit", 1)
    verdicts.refresh((), None)
    assert verdicts.values[:3].tolist() == [0, 1, 0]
    runner.close()
