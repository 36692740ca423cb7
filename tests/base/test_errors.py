"""The exceptions of Bayplan."""

from __future__ import annotations

import pickle

import pytest

from bayplan.base.errors import BayplanError, InputError, MissingExtra, MissingPlugins, PluginFailure
from bayplan.controllers.writer import WriteRejected


@pytest.mark.parametrize(
    "problem",
    [
        InputError("replicas", where="a.yaml:1", got="-1", wanted="a count", hint="'1'"),
        MissingExtra("ray", "ray"),
        MissingPlugins(["Mine=2"], where="results"),
        PluginFailure("Mine", "Filter", "KeyError: 'zone'"),
        WriteRejected("pods/a", "not today"),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_exceptions_are_the_same_after_pickling(problem: BayplanError) -> None:
    problem.add_note("in a worker")
    again = pickle.loads(pickle.dumps(problem))
    assert (type(again), str(again), again.__dict__) == (type(problem), str(problem), problem.__dict__)
