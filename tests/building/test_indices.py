"""Which compiled modules check their indices."""

from __future__ import annotations

import pytest
from building.extensions import directives_of
from building.modules import Module


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("bayplan.apiserver.fields.compare", True, id="a module of the API"),
        pytest.param("bayplan.sim.simulator", True, id="a module of the simulator"),
        pytest.param("bayplan.engine.heap", False, id="a module of the engine"),
    ],
)
def test_modules_that_handle_user_input_check_indices(name: str, want: bool) -> None:
    directives = directives_of(Module(name), checked=False)
    assert (directives["boundscheck"], directives["wraparound"]) == (want, want)
