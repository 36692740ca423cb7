"""Random CEL expressions: a seed always gives the same expression, and most have a value."""

from __future__ import annotations

from collections import Counter

from fuzz.draws import Draws
from fuzz.expression_grammar import random_expression

from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.objects.kinds import convert
from bayplan.objects.resource import Device
from bayplan.plugins.dynamic_resources.device_environment import compile_device_expression

DEVICE = convert(
    {
        "name": "d",
        "attributes": {
            "model": {"string": "a100"},
            "index": {"int": 1},
            "fast": {"bool": True},
            "version": {"version": "1.2.3"},
        },
        "capacity": {"memory": {"value": "1Gi"}},
    },
    Device,
)


def outcome(number: int) -> str:
    try:
        program = compile_device_expression(random_expression(Draws(f"{number}")), list_attributes=False)
        return str(program("gpu.example.com", DEVICE))
    except CompileProblem:
        return "not compiled"
    except RunProblem:
        return "failed"


def test_an_expression_depends_only_on_its_stream() -> None:
    assert random_expression(Draws("a")) == random_expression(Draws("a"))
    assert random_expression(Draws("a")) != random_expression(Draws("b"))


def test_most_expressions_evaluate_and_some_fail() -> None:
    outcomes = Counter(map(outcome, range(400)))
    assert outcomes["True"] > 60
    assert outcomes["False"] > 60
    assert outcomes["failed"] > 20
    assert 0 < outcomes["not compiled"] < 60
