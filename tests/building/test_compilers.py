"""The compiler that CC names, and the optimization level of each class of modules."""

from __future__ import annotations

import pytest
from building.compilers import Compiler, NoCompilerError, find_compiler
from building.extensions import level_of
from building.modules import BASELINE, checkout_sources

from tests.missing import missing


@pytest.mark.parametrize(
    ("name", "of_gcc", "of_others"),
    [
        pytest.param("bayplan.plugins.node_resources_fit", "-O1 -ftree-vectorize", "-O3", id="a hot module"),
        pytest.param("bayplan.engine.in_flight", "-O1", "-O1", id="a module of the engine"),
        pytest.param("bayplan.sim.simulator", "-O1", "-O1", id="a module of the simulator"),
    ],
)
def test_each_class_of_modules_has_its_optimizations(name: str, of_gcc: str, of_others: str) -> None:
    sources = checkout_sources()
    module = next(module for module in sources.modules() if module.name.startswith(name))
    for compiler, want in (("gcc 12.2.0", of_gcc), ("clang 14.0.0", of_others), ("zig 0.17.1", of_others)):
        flags = Compiler(compiler, ("cc",)).flags(BASELINE, level_of(module, sources))
        assert " ".join(flag for flag in flags if flag.startswith(("-O", "-ftree"))) == want


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
