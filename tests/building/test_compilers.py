"""The optimization level of each class of modules."""

from __future__ import annotations

import pytest
from building.compilers import Compiler
from building.extensions import level_of
from building.modules import BASELINE, checkout_sources


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
