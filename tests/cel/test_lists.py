"""The functions of lists, and how numbers of different types compare; the answers are those of Kubernetes v1.36.3."""

from __future__ import annotations

import pytest

from bayplan.cel.checker import Checker
from bayplan.cel.evaluator import compile_node, run
from bayplan.cel.parser import Parser
from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.cel.source import Source
from bayplan.cel.types import DYN


def value_of(text: str) -> object:
    node = Parser(text).parse()
    Checker(Source(text), {"x": DYN}, {}).check(node)
    return run(compile_node(node), {"x": 1})


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("[3, 1, 2].sort()", [1, 2, 3], id="sort"),
        pytest.param("['b', 'é', 'a'].sort()", ["a", "b", "é"], id="texts sort by bytes"),
        pytest.param("[-3, 1, 2].sortBy(e, e * e)", [1, 2, -3], id="sortBy"),
        pytest.param("[[1, 2], [], [3]].flatten()", [1, 2, 3], id="flatten"),
        pytest.param("[[[1]], [[2, 3]]].flatten(2)", [1, 2, 3], id="flatten twice"),
        pytest.param("[[1]].flatten(0)", [[1]], id="flatten nothing"),
        pytest.param("[1, 2, 3].existsOne(i, v, i + v == 3)", True, id="existsOne of index and value"),
        pytest.param("[duration('1s'), duration('2s')].sum() == duration('3s')", True, id="the sum of durations"),
        pytest.param("[1u, 2u].sum() + 1u == 4u", True, id="the sum of unsigned integers"),
        pytest.param("[1.5].filter(e, false).sum() + 1.0", 1.0, id="the sum of no doubles"),
        pytest.param("[duration('1s')].filter(e, false).sum() == duration('0s')", True, id="the sum of no durations"),
        pytest.param("[dyn(1u)].filter(e, false).sum()", 0, id="the sum of nothing of unknown type"),
        pytest.param("string([-0.0].sum())", "0", id="a sum starts from zero"),
        pytest.param("[dyn(1), dyn('a'), dyn(2)].max()", 2, id="elements without an order are skipped"),
        pytest.param("[dyn(true), dyn(2)].max()", True, id="booleans are not numbers"),
        pytest.param("[dyn(1), dyn('a'), dyn(0)].isSorted()", True, id="only adjacent elements are compared"),
        pytest.param(
            "[dyn(2), dyn(1), dyn(null)].isSorted()", False, id="elements after the first descent are ignored"
        ),
        pytest.param("[1, 2].transformMapEntry(i, v, {v: i}) == {1: 0, 2: 1}", True, id="transformMapEntry"),
        pytest.param("{'a': 1}.transformMapEntry(k, v, v == 0, {v: k}) == {}", True, id="transformMapEntry of some"),
        pytest.param("dyn(9223372036854775807) < 9223372036854775808.0", False, id="an integer is rounded to a double"),
        pytest.param("type(optional.none()) == optional_type", True, id="the type of optional values"),
    ],
)
def test_list_functions_return_the_values_of_kubernetes(text: str, want: object) -> None:
    assert value_of(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("[1].flatten(-1)", "level must be non-negative", id="a level below zero"),
        pytest.param("dyn([1, 'a']).sort()", "expected type 'int' but found 'string'", id="a list of two types"),
        pytest.param("[dyn(1), dyn('a')].sort()", "list elements must have the same type", id="elements of two types"),
        pytest.param("dyn([[1]]).sort()", "list elements must be comparable", id="elements without an order"),
        pytest.param("lists.range(1000001)", "actual cost limit exceeded", id="a range that costs too much"),
        pytest.param(
            f"lists.range({-(2**62)}).size() == 0 && lists.range(1000000).distinct().size() > 0",
            "actual cost limit exceeded",
            id="a negative range does not lift the limit",
        ),
        pytest.param(
            f"[[1]].flatten({-(2**62)}) == [1] || lists.range(1000001).size() > 0",
            "actual cost limit exceeded",
            id="a negative depth does not lift the limit",
        ),
        pytest.param("[9223372036854775807, 1, -1].sum()", "integer overflow", id="an intermediate sum out of range"),
        pytest.param("[dyn('a')].sum()", r"no such overload: sum\(list\)", id="the sum of texts"),
        pytest.param("[dyn(1), dyn(1.5)].sum()", "no such overload$", id="the sum of mixed numbers"),
        pytest.param("dyn('ab').reverse()", r"no such overload: reverse\(string\)", id="a text is not a list"),
        pytest.param("dyn('ab').first()", r"no such overload: first\(string\)", id="a text has no first element"),
        pytest.param("[dyn(1), dyn(null)].max()", "no such overload$", id="an element without an order"),
        pytest.param("[dyn(1), dyn([1])].isSorted()", "no such overload$", id="the order of a list"),
        pytest.param("[dyn([1])].max()", r"no such overload: max\(list\)", id="the maximum of lists"),
        pytest.param("[dyn(1)].join()", r"no such overload: join\(list\)", id="join of numbers"),
        pytest.param("[1].all(i, i, true)", "duplicate variable name: i", id="one name for two variables"),
        pytest.param(
            "[1, 2].transformMapEntry(i, v, {1: v})", "insert failed: key 1 already exists", id="an entry twice"
        ),
        pytest.param(
            "[1].transformMapEntry(i, v, dyn(v))", r"no such overload: cel.@mapInsert\(map, int\)", id="not a map"
        ),
        pytest.param(
            "[1].transformMapEntry(i, v, v)",
            r"no matching overload for 'cel.@mapInsert' applied to '\(map\(dyn, dyn\), int\)'",
            id="certainly not a map",
        ),
        pytest.param(
            "[1].transformMap(i, v, 1, v)",
            r"'\(int, map\(int, int\), map\(int, int\)\)'",
            id="the condition of transformMap",
        ),
        pytest.param("{}.sortBy(e, e)", "sortBy can only be applied to a list", id="sortBy of a map"),
    ],
)
def test_invalid_list_expressions_fail(text: str, want: str) -> None:
    with pytest.raises((CompileProblem, RunProblem), match=want):
        value_of(text)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("[1, 'a', true]", ["1:5: expected type 'int' but found 'string'"], id="the first of a list"),
        pytest.param(
            "{true: 1, 2: 2, 5u: 3}",
            ["1:11: expected type 'bool' but found 'int'", "1:17: expected type 'bool' but found 'uint'"],
            id="all keys of a map",
        ),
        pytest.param("'a' in [1, 'a', 2]", ["1:12: expected type 'int' but found 'string'"], id="no other error"),
        pytest.param("[1, [], [2]]", ["1:5: expected type 'int' but found 'list(dyn)'"], id="an empty list"),
    ],
)
def test_mixed_element_types_are_reported_after_all_other_errors(text: str, want: list[str]) -> None:
    with pytest.raises(CompileProblem) as refused:
        value_of(text)
    lines = [line.removeprefix("compilation failed: ") for line in str(refused.value).split("\n")]
    assert [line.removeprefix("ERROR: <input>:") for line in lines if "ERROR" in line] == want
