"""Errors about a wrong value give both the value and what was expected."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.project.tree import ROOT

SOURCES = ROOT / "src" / "bayplan"

WITHOUT_EXPECTATION = {
    "apiserver/bridge/typed_store.py": 1,  # An unexpected exception.
    "cluster/namespace_policies.py": 2,  # The API's reason to forbid a pod.
    "formats/typed_documents.py": 1,  # An unknown field; the hint names the known ones.
    "http_api/application.py": 1,  # A write that failed.
    "http_api/kss_api.py": 1,  # The response of an extender.
    "http_api/questions.py": 1,  # A question that took too long.
    "objects/kinds.py": 1,  # A text that is not JSON.
    "sim/simulator.py": 2,  # A simulation that does not advance.
    "sync/recording.py": 2,  # A file that can't be read or written.
}
"""Number of errors by module that have only one of `got` and `wanted`, because they are not about a value."""


def error_names(trees: dict[Path, ast.Module]) -> set[str]:
    """Return `InputError` and its subclasses."""
    names = {"InputError"}
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while found := {
        each.name for each in classes if each.name not in names and names & {ast.unparse(base) for base in each.bases}
    }:
        names |= found
    return names


def half_errors(tree: ast.Module, names: set[str]) -> Iterator[ast.Call]:
    """Yield the errors that have only one of `got` and `wanted`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            given = {keyword.arg for keyword in node.keywords}
            if None not in given and len(given & {"got", "wanted"}) == 1:
                yield node


def test_errors_about_a_wrong_value_have_got_and_wanted() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCES.rglob("*.py"))}
    names = error_names(trees)
    assert {"ConfigurationError", "PluginError", "RequestError"} <= names
    found: dict[str, int] = {}
    for path, tree in trees.items():
        if count := sum(1 for _ in half_errors(tree, names)):
            found[path.relative_to(SOURCES).as_posix()] = count
    assert found == WITHOUT_EXPECTATION
