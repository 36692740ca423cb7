"""The plot of growing costs: the same data gives the same SVG, with all series; measuring keeps other series."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.growth_plot import DATA, IMAGE, NOW, draw, load, measure

LINE = {"100": 20_000.0, "1000": 10_000.0}


@pytest.mark.parametrize(
    ("series", "want"),
    [
        pytest.param({"now": {"basic, all": LINE}}, ["plain", "100", "all nodes scored"], id="one line"),
        pytest.param(
            {"now": {"spread, sampled": LINE}, "before": {"basic, all": LINE}}, ["plain, before"], id="two series"
        ),
    ],
)
def test_a_plot_shows_its_series_and_is_reproducible(
    series: dict[str, dict[str, dict[str, float]]], want: list[str], tmp_path: Path
) -> None:
    for name in ("one.svg", "two.svg"):
        draw(series, tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    assert [word for word in want if f">{word}</text>" not in text] == []


def test_measure_replaces_one_series_and_preserves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "growth.json"
    measure(path, "before", (5,), 3)
    before = load(path)["before"]
    measure(path, "now", (5, 8), 3)
    assert load(path)["before"] == before
    assert load(path)["now"].keys() == before.keys()
    assert all(line.keys() == {"5", "8"} for line in load(path)["now"].values())


def test_the_documented_plot_shows_every_stored_series() -> None:
    text = IMAGE.read_text()
    labels = load(DATA)
    assert labels
    assert all(f">plain, {label}</text>" in text for label in labels if label != NOW)
