"""Limits on the nesting of expressions, with the messages of Kubernetes v1.36.3."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.base.recursion_limit import RECURSION_LIMIT
from bayplan.cel.problems import CompileProblem
from tests.cel.test_lists import value_of

RULE = "expression recursion limit exceeded: 250"
TREE = "max recursion depth exceeded"


@pytest.mark.parametrize(
    ("text", "last", "want"),
    [
        pytest.param(lambda n: "(" * n + "true" + ")" * n, 249, RULE, id="parentheses"),
        pytest.param(lambda n: "[1].all(x, " * n + "true" + ")" * n, 249, RULE, id="macros"),
        pytest.param(lambda n: "cel.bind(x, 1, " * n + "true" + ")" * n, 249, RULE, id="cel.bind"),
        pytest.param(lambda n: "[" * n + "]" * n, 250, RULE, id="lists"),
        pytest.param(lambda n: "1" + " + 1" * n + " > 0", 249, TREE, id="additions in a comparison"),
        pytest.param(lambda n: "1" + " * 1" * n, 250, TREE, id="multiplications"),
        pytest.param(lambda n: "dyn([0])" + "[0]" * n + " == 0", 249, TREE, id="indexes"),
        pytest.param(lambda n: "'a'" + ".trim()" * n, 250, TREE, id="calls of members"),
        pytest.param(lambda n: "true ? true : " * n + "true", 249, RULE, id="conditionals"),
        pytest.param(lambda n: "[1].sortBy(x, " * n + "1" + ")[0]" * n, 125, TREE, id="sortBy and an index"),
    ],
)
def test_expressions_nest_as_deeply_as_in_kubernetes(text: Callable[[int], str], last: int, want: str) -> None:
    with RECURSION_LIMIT.raised():
        for number, too_deep in ((last, False), (last + 1, True)):
            try:
                value_of(text(number))
                found = ""
            except CompileProblem as problem:
                found = str(problem)
            except Exception:
                found = ""
            assert found == (f"compilation failed: ERROR: <input>:-1:0: {want}" if too_deep else "")


def test_chains_of_and_do_not_nest() -> None:
    assert value_of("true" + " && true" * 1000) is True
