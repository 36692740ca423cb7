"""Each benchmark runs at a small size: it gives results, and its decisions are the same in each run."""

import pytest
from benchmarks.__main__ import benchmark_names, figures
from benchmarks.hashes import load_baseline

RECORDED = {row.partition("/")[0] for row in load_baseline()["rows"]["small"]}
"""Benchmarks whose decisions `test_decision_hashes` compares with recorded ones: they need not run twice here."""


@pytest.mark.parametrize("name", benchmark_names())
def test_a_small_benchmark_has_figures_and_reproducible_decisions(name: str) -> None:
    first = list(figures(name, "small"))
    assert first
    assert all(figure.value > 0 and figure.unit for figure in first)
    second = first if name in RECORDED else list(figures(name, "small"))
    assert [each.decisions_hash for each in first] == [each.decisions_hash for each in second]
