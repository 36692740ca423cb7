"""scripts/release.py releases a tag only if the version and the changelog agree with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.release import VERSION_FILE, main, problems, section, version_of

from bayplan.base.version import __version__
from tests.project.tree import ROOT


def checkout(folder: Path, *, version: str, changelog: str) -> Path:
    """Return a folder with a version and a changelog."""
    file = folder / VERSION_FILE
    file.parent.mkdir(parents=True)
    file.write_text(f'"""The version."""\n\n__version__ = "{version}"\n', encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("tag", "heading", "want"),
    [
        pytest.param("v1.2.0", "1.2.0 (2026-01-31)", "", id="all agree"),
        pytest.param("v1.3.0", "1.2.0 (2026-01-31)", "the tag is v1.3.0", id="a different tag"),
        pytest.param("1.2.0", "1.2.0 (2026-01-31)", "expected v1.2.0", id="a tag without the v"),
        pytest.param("v1.2.0", "1.1.0 (2026-01-31)", "has no section 1.2.0", id="a changelog without the version"),
        pytest.param("v1.2.0", "1.2.0 (not yet released)", "expected the heading", id="a section without a date"),
    ],
)
def test_a_release_requires_matching_tag_version_and_changelog(
    tag: str, heading: str, want: str, tmp_path: Path
) -> None:
    root = checkout(tmp_path, version="1.2.0", changelog=f"# Changelog\n\n## {heading}\n\n- A fix.\n")
    found = problems(root, tag)
    assert want in "".join(found)
    assert bool(found) is bool(want)


def test_release_notes_are_the_changelog_section_of_the_version(tmp_path: Path) -> None:
    text = "# Changelog\n\n## 1.2.0 (2026-01-31)\n\n- New.\n\n## 1.1.0 (2026-01-01)\n\n- Old.\n"
    assert section(checkout(tmp_path, version="1.2.0", changelog=text), "1.2.0") == ("1.2.0 (2026-01-31)", "- New.")


def test_the_changelog_contains_the_current_version_with_a_date() -> None:
    assert version_of(ROOT) == __version__
    assert problems(ROOT, f"v{__version__}") == []


def test_invalid_arguments_print_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["publish"]) == 2
    assert "scripts/release.py check" in capsys.readouterr().err


def test_the_release_page_names_each_job_of_the_workflow() -> None:
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    jobs = re.findall(r"^  (\w+):$", (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"), re.MULTILINE)
    assert [job for job in jobs if f"`{job}`" not in page and job != "push"] == []
