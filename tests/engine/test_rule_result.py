"""The result of a rule: when the rule is refreshed and runs."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from bayplan.engine.rule_result import FilterResult, ScoreResult
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle, Params, Reads, ScorePlugin
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import Columns
from bayplan.state.views import Rows
from bayplan.testing import make_node, make_pod
from tests.engine.recorders import make_scheduler


class Outdated(FilterRule):
    """Rejects every node with the number of `refresh` calls, and requires a run on all rows after every second call."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.refreshed = 0

    def refresh(self) -> bool:
        self.refreshed += 1
        return self.refreshed % 2 == 0

    def filter(self, row: int) -> int:
        return self.refreshed


class Inherits(Outdated):
    """Has its `refresh` from its base."""


@pytest.mark.parametrize("kind", [Outdated, Inherits], ids=["its own", "that of a base"])
def test_each_use_of_a_result_calls_the_refresh_of_its_rule(kind: type[Outdated]) -> None:
    state = make_scheduler(in_tree=("NodeResourcesFit",), nodes=("n1",)).state
    rule = kind(state.columns)
    plugin: Any = SimpleNamespace(name="Custom", reads=Reads.NODES, filter_rule=lambda *_: rule)
    result = FilterResult(plugin, SimpleNamespace(), state)
    found = []
    for _ in range(4):
        result.refresh((), np.ones(state.nodes.capacity, dtype=np.uint8))
        found.append((rule.refreshed, int(result.values[0])))
    # The rule runs on the first use, and when `refresh` returns True.
    assert found == [(1, 1), (2, 2), (3, 2), (4, 4)]


class Marks(ScoreRule):
    """Scores nodes by its spec plus the number of its `bind` calls, and counts how often it scores a row."""

    def __init__(self, columns: Columns, mark: int) -> None:
        super().__init__(columns)
        self.mark, self.bound, self.scored = mark, 0, 0

    def bind(self) -> None:
        self.bound += 1

    def score(self, row: int) -> int:
        self.scored += 1
        return self.mark + self.bound


class Late(Marks):
    """Also adds the number of its `refresh` calls, and scores all rows again after each."""

    def __init__(self, columns: Columns, mark: int) -> None:
        super().__init__(columns, mark)
        self.refreshed = 0

    def refresh(self) -> bool:
        self.refreshed += 1
        self.bound = 10 * self.refreshed
        return True


class Scorer(ScorePlugin[Any]):
    """Has a rule of another class, which reads other data, for each mark of a pod."""

    name = "Scorer"
    rules: ClassVar[dict[int, type[Marks]]] = {1: Marks, 2: Marks, 3: Late, 4: Marks}

    def score_rule(self, spec: Any, cluster: ClusterState) -> ScoreRule:
        return self.rules[spec.key](cluster.columns, spec.key)

    def score_reads(self, spec: Any) -> Reads:
        return Reads.USAGE if spec.key == 4 else Reads.NODES


def test_an_adapted_result_has_a_new_rule_that_is_bound_refreshed_and_told_of_the_changes_that_it_reads() -> None:
    state, values, rules = make_scheduler(in_tree=("NodeResourcesFit",), nodes=("n1",)).state, [], Scorer.rules
    result: Any = ScoreResult(Scorer(None, Handle(state, FeatureGates())), SimpleNamespace(key=1), state)
    for mark in rules:
        if mark > 1:
            result.adapt(SimpleNamespace(key=mark))
        for _ in range(2):
            result.refresh((), np.ones(state.nodes.capacity, dtype=np.uint8))
            values.append((int(result.values[0]), result.static))
    scored = result.rule.scored
    state.place(state.pod_info(make_pod("p").obj()), 0)
    result.refresh((), np.ones(state.nodes.capacity, dtype=np.uint8))
    assert values == [(2, True), (2, True), (3, True), (3, True), (13, True), (23, True), (5, False), (5, False)]
    assert result.rule.scored == scored + 1


@dataclass(frozen=True)
class Nothing:
    key: tuple[()] = ()


class Observes(ScorePlugin[Nothing]):
    name = "Observes"
    observed: ClassVar[list[int]] = []

    def compile(self, pod: Pod, cluster: ClusterState) -> Nothing:
        return Nothing()

    def observe(self, spec: Nothing, cluster: ClusterState) -> Params:
        self.observed.append(len(cluster.nodes))
        return (len(cluster.nodes),)

    def score(self, spec: Nothing, params: Params | None, rows: Rows) -> Ints:
        return np.zeros(len(rows), dtype=np.int64)


@pytest.mark.parametrize(
    ("pre_reads", "want"),
    [
        pytest.param(Reads.EVERYTHING, [2, 2, 2, 3, 3], id="in every cycle, by default"),
        pytest.param(Reads.NOTHING, [2, 3], id="only after changes of nodes, if it declares so"),
    ],
)
def test_a_plugin_without_pre_score_observes_the_cluster(
    monkeypatch: pytest.MonkeyPatch, pre_reads: Reads, want: list[int]
) -> None:
    monkeypatch.setattr(Observes, "pre_reads", pre_reads)
    monkeypatch.setattr(Observes, "observed", [])
    scheduler = make_scheduler(Observes, nodes=("n1", "n2"))
    for number in range(5):
        if number == 3:
            scheduler.handle(None, make_node("n3").obj(), 0)
        scheduler.handle(None, make_pod(f"p{number}").obj(), 0)
        scheduler.schedule_one(0)
    assert Observes.observed == want
