"""The house rules about code that a machine can check."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.project.tree import name_of, python_files, text_files

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70

LONG_FILES: dict[str, int] = {}
"""Files that are longer for a reason, and how long they may be. A ratchet: numbers only go down, lines only go away."""

LONG_FUNCTIONS: dict[str, int] = {
    "src/bayplan/cli/up.py::up": 72,  # Its parameters are the options of the command, one per line.
}
"""Functions that are longer for a reason (``path::name``), and how long they may be. A ratchet, too."""

FORBIDDEN_MODULES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "shared_code", "tools"})

# Split into parts, so that this file does not violate the rule itself.
UNFINISHED = re.compile(
    r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "NotImplemented" + "Error"]) + r")\b"
)
MACHINE_PATHS = re.compile(r"(?<![\w.])/(work|root|Users|home/[a-z]\w*)/|\bbash_jobs\b")
REGISTRIES = re.compile(
    r"\bpypi\.|python"
    + r"hosted|npm"
    + r"js\.org|crates\.io/|proxy\.gol"
    + r"ang|--(extra-)?index-"
    + r"url|--find-"
    + r"links"
)


@dataclass(frozen=True, slots=True)
class Source:
    """The properties of a Python file that the rules check.

    Attributes:
        docstring: the docstring of the module.
        lengths: the lines of each function (``path::Class.name``), including its docstring.
        relative_imports, facade_imports: the places of such imports (``path:line``).
    """

    docstring: str
    lengths: dict[str, int]
    relative_imports: list[str]
    facade_imports: list[str]


@cache
def source(path: Path) -> Source:
    """Parse a file, once for all rules."""
    read = Source(ast.get_docstring(tree := ast.parse(path.read_bytes())) or "", {}, [], [])

    def walk(node: ast.AST, inside: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = inside
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if not isinstance(child, ast.ClassDef):
                    lines = (child.end_lineno or child.lineno) - child.lineno + 1
                    read.lengths[f"{name_of(path)}::{inside}{child.name}"] = lines
                name = f"{inside}{child.name}."
            elif isinstance(child, ast.Import) and any(alias.name == "bayplan" for alias in child.names):
                read.facade_imports.append(f"{name_of(path)}:{child.lineno}")
            elif isinstance(child, ast.ImportFrom) and child.level:
                read.relative_imports.append(f"{name_of(path)}:{child.lineno}")
            elif isinstance(child, ast.ImportFrom) and child.module == "bayplan":
                read.facade_imports.append(f"{name_of(path)}:{child.lineno}")
            if not isinstance(child, ast.expr):
                walk(child, name)

    walk(tree, "")
    return read


def too_long(lengths: dict[str, int], limit: int, allowed: dict[str, int]) -> list[str]:
    found = [f"{name}: {lines} lines, not over {allowed.get(name, limit)}" for name, lines in lengths.items()]
    over = [
        text for text, (name, lines) in zip(found, lengths.items(), strict=True) if lines > allowed.get(name, limit)
    ]
    done = [f"{name} needs no exception any more" for name in allowed if lengths.get(name, 0) <= limit]
    return over + done


def test_files_stay_below_the_line_limit() -> None:
    lengths = {name_of(path): len(path.read_bytes().splitlines()) for path in python_files()}
    assert too_long(lengths, MAX_FILE_LINES, LONG_FILES) == []


def test_functions_stay_below_the_line_limit() -> None:
    lengths = {name: lines for path in python_files() for name, lines in source(path).lengths.items()}
    assert too_long(lengths, MAX_FUNCTION_LINES, LONG_FUNCTIONS) == []


def test_each_module_has_a_docstring() -> None:
    files = python_files("src", "benchmarks", "scripts", "tests")
    assert [name_of(path) for path in files if path.stat().st_size and not source(path).docstring] == []


def test_first_sentences_of_module_docstrings_end_with_punctuation() -> None:
    first_sentences = {name_of(path): source(path).docstring.partition("\n\n")[0] for path in python_files("src")}
    assert [name for name, first in first_sentences.items() if not re.search(r"[.:]$", first)] == []


def test_no_module_has_a_generic_name() -> None:
    assert [name_of(path) for path in python_files() if path.stem in FORBIDDEN_MODULES] == []


def test_source_modules_do_not_import_the_facade() -> None:
    assert [place for path in python_files("src") for place in source(path).facade_imports] == []


def test_imports_are_absolute() -> None:
    assert [place for path in python_files() for place in source(path).relative_imports] == []


@pytest.mark.parametrize(
    "pattern",
    [UNFINISHED, MACHINE_PATHS, REGISTRIES],
    ids=["no open work is left", "no path of a machine", "no address of a package index"],
)
def test_no_text_file_matches_a_forbidden_pattern(pattern: re.Pattern[str]) -> None:
    found = []
    for path in text_files():
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{name_of(path)}:{number} {line.strip()[:80]}")
    assert found == []


def test_text_files_end_with_one_newline_and_have_no_trailing_whitespace() -> None:
    untidy = []
    for path in text_files():
        text = path.read_text(encoding="utf-8")
        if text and (not text.endswith("\n") or text.endswith("\n\n") or re.search(r"[ \t]+$", text, re.MULTILINE)):
            untidy.append(name_of(path))
    assert untidy == []
