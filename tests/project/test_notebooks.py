"""The notebooks in examples/ run cell by cell, and the last value of each cell can be displayed."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.project.tree import ROOT

NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))


def run(path: Path) -> list[object]:
    """Run a notebook in its folder; return what its cells show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown: list[object] = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name} cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"{path.name} cell {number}", "eval"), names)
            if value is not None:
                shown.append(value)
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_results_have_html(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    shown = run(path)
    assert shown
    for value in shown:
        show = getattr(value, "_repr_html_", None) or value.to_frame()._repr_html_  # type: ignore[attr-defined]
        assert "<table" in show()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
