"""The report has valid charts, needs no network, and a browser displays it without errors."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.examples import example_path
from bayplan.reports.page import read_runs
from tests.ui.browsing import SCREENSHOTS, chromium


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two runs that differ in their seed."""
    folder = tmp_path_factory.mktemp("results")
    for seed in (1, 2):
        out = str(folder / f"seed{seed}")
        assert main(["simulate", str(example_path()), "--seed", str(seed), "--until", "2h", "--out", out]) == 0
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> Path:
    """Return a report about them."""
    out = results / "report.html"
    names = [f"default={results / 'seed1'}", f"default={results / 'seed2'}", f"other </b>={results / 'seed1'}"]
    assert main(["report", *names, "-o", str(out), "--title", "Two & three"]) == 0
    return out


def figures(page: Path) -> dict[str, dict[str, object]]:
    found = re.findall(r'<script type="application/json" id="([\w-]+)-data">(.*?)</script>', page.read_text())
    return {name: json.loads(text) for name, text in found}


def test_directories_with_one_label_are_seeds_of_one_run(results: Path) -> None:
    runs = read_runs([f"a={results / 'seed1'}", f"a={results / 'seed2'}", str(results / "seed2")])
    assert {label: [run.facts.seed for run in group] for label, group in runs.items()} == {"a": [1, 2], "seed2": [2]}


def test_results_of_two_sweeps_are_distinguished_by_their_labels(results: Path, tmp_path: Path) -> None:
    for name in ("before", "after"):
        saved = tmp_path / name / "results" / "weight-1"
        saved.mkdir(parents=True)
        (saved / "seed-1").symlink_to(results / "seed1")
    folders = {name: tmp_path / name for name in ("before", "after")}
    assert list(read_runs([str(folders["after"])])) == ["weight-1"]
    assert list(read_runs([f"{name}={path}" for name, path in folders.items()])) == [
        "before weight-1",
        "after weight-1",
    ]
    with pytest.raises(InputError, match="try a different LABEL=DIR for each configuration"):
        read_runs([str(path) for path in folders.values()])


def test_directories_of_one_name_are_labelled_by_their_paths(results: Path, tmp_path: Path) -> None:
    paths = [tmp_path / month / "result" for month in ("may", "june")]
    for path in paths:
        shutil.copytree(results / "seed1", path)
    assert list(read_runs([str(path) for path in paths])) == ["may/result", "june/result"]


def test_runs_of_one_label_must_have_different_seeds(results: Path) -> None:
    with pytest.raises(InputError, match="runs labelled 'a': expected one run for each seed, got several with seed 1"):
        read_runs([f"a={results / 'seed1'}", f"a={results / 'seed1'}"])


def test_a_directory_without_a_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="result directory"):
        read_runs([str(tmp_path)])


def test_every_chart_is_a_valid_figure(page: Path) -> None:
    from plotly.graph_objects import Figure

    found = figures(page)
    assert found
    for figure in found.values():
        Figure(figure)  # Raises an exception for an unknown property or a wrong value.


def test_the_page_contains_all_charts(page: Path) -> None:
    names = set(figures(page))
    assert {"utilisation-0", "queue", "waits", "waits-priority", "waits-workload", "without-room-0"} <= names
    assert {"rejections", "nodes-0", "nodes-1", "gantt"} <= names


def test_several_seeds_have_confidence_intervals(page: Path) -> None:
    data = figures(page)["queue"]["data"]
    assert isinstance(data, list)
    bands = [each["legendgroup"] for each in data if "fill" in each]
    assert bands == ["default"]


def test_names_are_escaped(page: Path) -> None:
    text = page.read_text()
    assert "<title>Two &amp; three</title>" in text
    assert "other </b>" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_a_browser_draws_all_charts_without_network_access(page: Path) -> None:
    problems: list[str] = []
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1100, "height": 800})
        tab.on("console", lambda message: problems.append(message.text))
        tab.on("pageerror", lambda problem: problems.append(str(problem)))
        tab.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-drawn=true]", state="attached", timeout=60_000)
        drawn = tab.locator(".chart .main-svg").count()
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=SCREENSHOTS / "report.png", full_page=True)
        light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        tab.emulate_media(color_scheme="dark")
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != light
        tab.wait_for_function(
            "document.querySelector('.chart')._fullLayout.font.color === "
            "getComputedStyle(document.documentElement).getPropertyValue('--text')"
        )
        tab.set_viewport_size({"width": 390, "height": 800})
        tab.wait_for_function("document.documentElement.scrollWidth <= 390")
        assert drawn >= tab.locator(".chart").count() > 10
    assert problems == []


def test_a_missing_plotly_error_names_the_command_to_install_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.delitem(sys.modules, "plotly.offline", raising=False)
    assert main(["report", str(results / "seed1"), "-o", str(results / "none.html")]) == 2
    assert "pip install '.[report]'" in capsys.readouterr().err
    assert not (results / "none.html").exists()
