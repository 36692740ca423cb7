"""A set of rules knows whether one of its rules reads the feasible nodes, even after results were replaced."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bayplan.engine.rule_result import RuleSet


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
