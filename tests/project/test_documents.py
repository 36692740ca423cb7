"""The build: the steps of continuous integration, pinned versions, and documents that refer only to existing things."""

import contextlib
import functools
import importlib.metadata
import io
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import COMMANDS, main
from bayplan.cli.reference import reference
from tests.project.tree import ROOT, documents, name_of

NAME = re.compile(r"^[A-Za-z0-9._-]+")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_continuous_integration_runs_exactly_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    browser = "command -v chromium >/dev/null || scripts/install-chromium.sh"
    assert commands == ["set -eu", 'cd "$(dirname "$0")/.."', browser, "exec make test"]


def test_make_test_runs_format_lint_type_and_layer_checks_before_pytest() -> None:
    plan = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    steps = ["ruff format --check", "ruff check", "mypy", "lint-imports", "pytest -n 2"]
    places = [plan.index(step) for step in steps]
    assert places == sorted(places)


def test_make_help_lists_every_target() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert {line.split()[1] for line in listed.splitlines()} == targets()


def _of_extras(project: dict[str, Any]) -> list[str]:
    """Return the dependencies of the extras, except other extras."""
    needs = [need for extra in project["optional-dependencies"].values() for need in extra]
    return [need for need in needs if not need.startswith(f"{project['name']}[")]


def test_each_dependency_is_pinned_to_one_version() -> None:
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pin = r"""[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+]*(; python_version (<|>=) "3\.[0-9]+")?"""
    assert [line for line in pins if not re.fullmatch(pin, line)] == []
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needs = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    needs += _of_extras(project["project"])
    names = {match.group().lower().replace("_", "-") for need in needs if (match := NAME.match(need))}
    assert names - pinned == set()


def test_each_pinned_version_runs_on_the_oldest_python() -> None:
    """The metadata of the installed versions name the Python that they need; `make run` must work with ours."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=") + ".0"
    needs = {
        each.name: str(each.metadata.json.get("requires_python", "")) for each in importlib.metadata.distributions()
    }
    lowest = {name: max(re.findall(r">=? *([\d.]+)", need), key=version, default="3") for name, need in needs.items()}
    assert {name: need for name, need in lowest.items() if version(need) > version(oldest)} == {}


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)


def test_each_dependency_has_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needs = [*project["project"]["dependencies"], *_of_extras(project["project"])]
    text = (ROOT / "docs" / "dependencies.md").read_text()
    assert [need for need in needs if (match := NAME.match(need)) and f"| {match.group()} |" not in text] == []


def commands(path: Path) -> list[str]:
    """Return the commands that a document shows: lines of shell blocks, and commands between backticks."""
    text = path.read_text()
    blocks = [block for language, block in FENCE.findall(text) if language in ("sh", "shell", "bash", "console")]
    lines = [line.removeprefix("$ ").partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines + INLINE.findall(FENCE.sub("", text)) if re.match(r"(make|bayplan)( |$)", line)]


@pytest.mark.parametrize("path", documents(), ids=name_of)
def test_documents_use_existing_targets_and_commands(path: Path) -> None:
    known = {command.name for command in COMMANDS}
    wrong = []
    for command in commands(path):
        program, *words = command.split()
        names = [word for word in words if not word.startswith("-") and "=" not in word]
        if program == "make" and names and names[0] not in targets():
            wrong.append(command)
        if program == "bayplan" and names and names[0] not in known and not re.fullmatch(r"[A-Z]+|\W+", names[0]):
            wrong.append(command)
    assert wrong == []


@functools.cache
def options_of(verb: str) -> frozenset[str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main([verb, "--help"])
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][\w-]*", printed.getvalue()))


@pytest.mark.parametrize("path", documents(), ids=name_of)
def test_documents_use_existing_options(path: Path) -> None:
    wrong = []
    for command in commands(path):
        program, *words = command.split()
        verb = next((word for word in words if not word.startswith("-")), None)
        if program == "bayplan" and verb in {each.name for each in COMMANDS}:
            known = options_of(verb) | {"-"}
            wrong += [command for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    assert wrong == []


@pytest.mark.parametrize("path", documents(), ids=name_of)
def test_links_in_documents_are_valid(path: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(link)
    assert broken == []


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as code hosting sites make them."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_command_line_reference_is_current() -> None:
    written = (ROOT / "docs" / "cli.md").read_text()
    assert written == reference(), "run: make docs-cli"


def python_blocks() -> list[tuple[str, str]]:
    return [
        (f"{name_of(path)}:{number}", block)
        for path in documents()
        for number, (language, block) in enumerate(FENCE.findall(path.read_text()), 1)
        if language == "python"
    ]


@pytest.mark.parametrize("block", [block for _, block in python_blocks()], ids=[name for name, _ in python_blocks()])
def test_python_blocks_in_documents_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(block, "document", "exec"), {"__name__": "document"})
