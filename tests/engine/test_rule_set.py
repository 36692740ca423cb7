"""A set of rules knows whether one of its rules reads the feasible nodes, even after results were replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bayplan.engine.rule_result import FilterResult, RuleSet
from bayplan.framework.plugin import Reads
from bayplan.framework.rule import FilterRule
from bayplan.state.columns import Columns
from tests.engine.recorders import make_scheduler


def _result(*, reads_feasible: bool) -> Any:
    return SimpleNamespace(rule=SimpleNamespace(reads_feasible=reads_feasible), plugin=SimpleNamespace())


def test_replaced_results_update_reads_feasible() -> None:
    rules = RuleSet("Score", SimpleNamespace(timer=None))  # type: ignore[arg-type]
    plain, reading = _result(reads_feasible=False), _result(reads_feasible=True)
    found = []
    rules.choose([plain], [False])
    found.append(rules.reads_feasible)
    for result in (reading, plain):
        rules.replace([result])
        found.append(rules.reads_feasible)
    assert found == [False, True, False]


class Outdated(FilterRule):
    """Rejects a node if its last `refresh` said so, and changes its mind in every second one."""

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
