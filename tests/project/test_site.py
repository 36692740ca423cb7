"""The documentation site builds without warnings, and documents each public name and each decision."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bayplan
from tests.project.tree import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_each_documentation_page_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}


def test_each_public_name_has_its_signature_and_description(site: Path) -> None:
    text = (site / "library.html").read_text(encoding="utf-8")
    names = [name for name in bayplan.__all__ if name != "__version__"]
    assert [name for name in names if not re.search(rf'id="bayplan\.[\w.]*\b{name}"', text)] == []


def test_links_stay_within_the_site(site: Path) -> None:
    outside = [
        f"{path.relative_to(site)}: {link}"
        for path in sorted(site.rglob("*.html"))
        for link in re.findall(r'href="(\.\./[^"#]*)', path.read_text(encoding="utf-8"))
        if not (path.parent / link).resolve().is_relative_to(site.resolve())
    ]
    assert outside == []


def test_no_resources_are_loaded_from_another_host(site: Path) -> None:
    loaded = [
        f"{path.relative_to(site)}: {address}"
        for path in sorted(site.rglob("*.html"))
        for address in re.findall(r'<(?:script|img|link)\b[^>]*(?:src|href)="(https?:[^"]*)', path.read_text("utf-8"))
    ]
    assert loaded == []


def test_each_architecture_decision_is_listed_with_its_title() -> None:
    folder = ROOT / "docs" / "adr"
    listed = dict(re.findall(r"\[(.+)\]\((\d{4}-[\w-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8")))
    titles = {path.read_text("utf-8").partition("\n")[0]: path.name for path in sorted(folder.glob("0*.md"))}
    assert {re.sub(r"^# (ADR )?\d+[:.]?\s*", "", title): name for title, name in titles.items()} == listed


def test_links_named_after_a_file_get_the_page_title(site: Path) -> None:
    text = (site / "page.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="plugins.html[^"]*">Write a plugin</a>', text)
    named = [
        path.name for path in site.glob("*.html") if re.search(r"<a href=[^>]*>[\w-]+\.md</a>", path.read_text("utf-8"))
    ]
    assert named == []


def test_images_link_to_their_full_size(site: Path) -> None:
    text = (site / "page.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<a href="([^"]+)"><img [^>]*src="([^"]+)"', text)
    assert pictures
    assert all(link == source and (site / source).is_file() for link, source in pictures)


def test_long_names_in_tables_may_break_between_words(site: Path) -> None:
    text = (site / "performance.html").read_text(encoding="utf-8")
    assert "<td>Scheduling<wbr>Pod<wbr>Matching<wbr>Anti<wbr>Affinity</td>" in text
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "SchedulingPodMatchingAntiAffinity" in index
