"""Each benchmark runs at a small size, has results, and makes the same decisions in each run."""

import pytest
from benchmarks.__main__ import benchmark_names, figures
from benchmarks.hashes import load_baseline

RECORDED = {row.partition("/")[0] for row in load_baseline()["rows"]["small"]}
"""Benchmarks whose decisions `test_decision_hashes` compares with recorded ones: they run only once here."""


@pytest.mark.parametrize("name", benchmark_names())
def test_a_small_benchmark_has_figures_and_reproducible_decisions(name: str) -> None:
    first = list(figures(name, "small"))
    assert first
    assert all(figure.value > 0 and figure.unit for figure in first)
    if name not in RECORDED:
        second = figures(name, "small")
        assert [each.decisions_hash for each in first] == [each.decisions_hash for each in second]
