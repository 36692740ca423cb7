"""Developing the plugin Gang on a running server: editing its file changes its column in a waiting pod's matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect

from bayplan.contrib import gang
from tests.ui.browsing import Visitor
from tests.ui.running import Running, running

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gang"
SOURCE = Path(gang.__file__).read_text(encoding="utf-8")
SIZE = "return int(text) if text.isascii() and text.isdigit() else 0"
THIRD = "return -(-int(text) // 3) if text.isascii() and text.isdigit() else 0"
"""docs/plugins.md makes this edit: a third of a gang is enough to begin."""

UNFINISHED = "return (int(text) if text.isascii() and text.isdigit() else 0"

Visit = Callable[..., Visitor]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a copy of the plugin to work on; members wait two seconds for one another, not a minute."""
    found = tmp_path / "gang.py"
    found.write_text(SOURCE.replace("DEFAULT_TIMEOUT_SECONDS = 60", "DEFAULT_TIMEOUT_SECONDS = 2"))
    return found


@pytest.fixture
def server(tmp_path: Path, file: Path) -> Iterator[Running]:
    documents = [
        document
        for name in ("cluster.yaml", "jobs.yaml")
        for document in yaml.safe_load_all((EXAMPLE / name).read_text(encoding="utf-8"))
        if document
    ]
    with running(tmp_path, documents, "--plugin", f"{file}:Gang") as found:
        yield found


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_a_plugin_is_edited_and_reloaded_on_a_running_server(server: Running, file: Path, visit: Visit) -> None:
    visitor = visit(server.url, expected=("422", "400"))
    visitor.go("/ui/pods/default/blue-5")
    cells = visitor.page.locator(".mrow:not([hidden]) .mcell[data-column]")
    expect(visitor.page.locator("h1")).to_contain_text("gang default/blue needs room for")
    expect(visitor.test("pre-filter-Gang")).to_be_visible()
    expect(cells).to_have_text(["✕", "✕"])
    visitor.shoot("real-gang-waits")

    edit(file, SIZE, UNFINISHED)
    visitor.test("reload").click()
    expect(visitor.test("plugins-refused")).to_contain_text("SyntaxError: '(' was never closed")
    expect(visitor.test("plugins-refused")).to_contain_text(file.name)
    expect(cells).to_have_text(["✕", "✕"])
    visitor.shoot("real-gang-refused")
    visitor.go("/ui/plugins")
    visitor.test("reload").click()
    expect(visitor.page.locator("h1")).to_contain_text("refused")
    expect(visitor.test("plugins-refused")).to_contain_text("was never closed")
    visitor.shoot("real-plugins-refused")

    edit(file, UNFINISHED, THIRD)
    visitor.go("/ui/pods/default/blue-5")
    visitor.test("reload").click()
    expect(visitor.page.locator("h1")).to_contain_text("GPU", ignore_case=True)
    expect(visitor.test("pre-filter-Gang")).to_contain_text("all pass")
    expect(cells.filter(has_text="✓")).to_have_count(2)
    expect(visitor.test("column-NodeResourcesFit")).to_be_visible()
    expect(visitor.test("plugins-refused")).to_have_count(0)
    visitor.shoot("real-gang-changed")
    visitor.go("/ui/pods?q=blue&status=placed")
    expect(visitor.test("pod-table").locator("a.name", has_text="blue")).to_have_count(2)
