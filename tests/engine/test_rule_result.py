"""The result of a rule: when the rule is refreshed and runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bayplan.engine.rule_result import FilterResult
from bayplan.framework.plugin import Reads
from bayplan.framework.rule import FilterRule
from bayplan.state.columns import Columns
from tests.engine.recorders import make_scheduler


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
