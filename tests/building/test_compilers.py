"""The compiler that CC names, and the optimization level of each class of modules."""

from __future__ import annotations

import pytest
from building.compilers import Compiler, NoCompilerError, find_compiler
from building.extensions import level_of
from building.modules import BASELINE, checkout_sources

from tests.missing import missing


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("bayplan.plugins.node_resources_fit", "-O3", id="a hot module"),
        pytest.param("bayplan.engine.in_flight", "-O1", id="a module of the engine"),
        pytest.param("bayplan.apiserver.codec.shape", "-Og", id="a module of the API"),
        pytest.param("bayplan.classic.plugins.priority", "-Og", id="a module of the classic scheduler"),
        pytest.param("bayplan.controllers.", "-Og", id="a module of the controllers"),
    ],
)
def test_each_class_of_modules_has_its_optimization_level(name: str, want: str) -> None:
    sources = checkout_sources()
    module = next(module for module in sources.modules() if module.name.startswith(name))
    flags = Compiler("gcc", ("gcc",)).flags(BASELINE, level_of(module, sources))
    assert [flag for flag in flags if flag.startswith("-O")] == [want]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("'", "CC=' does not work: No closing quotation", id="an open quote"),
        pytest.param(
            "/nowhere/cc -O2",
            "CC=/nowhere/cc -O2 does not work: [Errno 2] No such file or directory: '/nowhere/cc'",
            id="a missing program",
        ),
    ],
)
def test_an_unusable_cc_is_reported(text: str, want: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", text)
    with pytest.raises(NoCompilerError) as caught:
        find_compiler(install_zig=False)
    assert str(caught.value) == want


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_cc_is_ignored(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    try:
        want = find_compiler(install_zig=False)
    except NoCompilerError as problem:
        missing(f"nothing compiles here: {problem}")
    monkeypatch.setenv("CC", text)
    assert find_compiler(install_zig=False) == want
