"""JSON paths of printer columns."""

from __future__ import annotations

import pytest

from bayplan.apiserver.tables.json_paths import MISSING, first_value

OBJECT = {
    "a": {"b/c.d": 1, "null": None, "f(x)'": 3},
    "list": [1, 2, 3],
    "lists": [[], [1]],
    "mix": {"a": 4, "b": {"c": 5}},
    "conditions": [
        {"type": "Other", "status": "False", "n": 1},
        {"type": "Ready", "status": "True", "n": 2, "ok": True},
    ],
}


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param(r".a.b/c\.d", 1, id="an escaped dot"),
        pytest.param(r".a['b/c\.d']", 1, id="an escaped dot in quotes"),
        pytest.param(".a['b/c.d']", MISSING, id="a plain dot in quotes separates names"),
        pytest.param(".a.null", None, id="null"),
        pytest.param(".a.null.x", MISSING, id="below null"),
        pytest.param(".list[-1]", 3, id="the last item"),
        pytest.param(".list[7]", MISSING, id="no such item"),
        pytest.param(".list[1:]", 2, id="a slice"),
        pytest.param(".list[2,0]", 3, id="a union"),
        pytest.param(".list[*]", 1, id="all items"),
        pytest.param(".a[0]", MISSING, id="an item of an object"),
        pytest.param(".conditions[?(@.type=='Ready')].status", "True", id="equal to a text"),
        pytest.param('.conditions[?( @.type != "Ready" )].status', "False", id="unequal, with blanks"),
        pytest.param(".conditions[?(@.n>1)].type", "Ready", id="greater than a number"),
        pytest.param(".conditions[?(@.n<=1)].type", "Other", id="at most a number"),
        pytest.param(".conditions[?(@.n=='1')].type", MISSING, id="values of different types"),
        pytest.param(".conditions[?(@.ok==true)].type", "Ready", id="equal to a boolean"),
        pytest.param(".conditions[?(@.ok)].type", "Ready", id="existence"),
        pytest.param(".conditions[?(@.type!=@.status)].n", 1, id="unequal to another path"),
        pytest.param('.conditions[?(.type=="Ready")].n', 2, id="a path on the left without an at sign"),
        pytest.param(".conditions[?(@.n==@.n)].n", 1, id="equal to another path"),
        pytest.param(".conditions[?(@.n==@.none)].n", MISSING, id="a path on the right that finds nothing"),
        pytest.param(".conditions[?(@.n==@.type)].n", MISSING, id="another path with another type"),
        pytest.param(".conditions[*].ok", True, id="the first item that has a field"),
        pytest.param("..type", "Other", id="anywhere"),
        pytest.param(".conditions[?(@.type", MISSING, id="a malformed path"),
        pytest.param(".list[::0]", MISSING, id="a step of zero"),
        pytest.param(".list[::-1]", MISSING, id="a negative step"),
        pytest.param(".list[::2]", 1, id="a step"),
        pytest.param(f".list[{'9' * 5000}]", MISSING, id="an index beyond 64 bits"),
        pytest.param("....type", MISSING, id="two recursive steps in a row"),
        pytest.param("...type", "Other", id="a recursive step before a dot"),
        pytest.param("..*", MISSING, id="a recursive step before a wildcard"),
        pytest.param("..['type']", "Other", id="a recursive step before a quoted field"),
        pytest.param(".a[*]", MISSING, id="all items of an object"),
        pytest.param(".a.*", 1, id="all values of an object"),
        pytest.param(".*.*", 1, id="values of lists and objects"),
        pytest.param(".mix.*.*", 5, id="scalars have no values"),
        pytest.param(".list[0:9]", MISSING, id="an end out of bounds"),
        pytest.param(".list[-9:]", MISSING, id="a start out of bounds"),
        pytest.param(".list[7,0]", MISSING, id="an item of a union out of bounds"),
        pytest.param(".list[2:1]", MISSING, id="an end before the start"),
        pytest.param(".list[ 2, 0 ]", 3, id="a union with blanks"),
        pytest.param(".a['none', 'b/c\\.d']", 1, id="a union of fields"),
        pytest.param(".list[]", 1, id="empty brackets"),
        pytest.param(".lists[*][*]", MISSING, id="an empty range ends the search"),
        pytest.param(".a.f(x)'", 3, id="a field with parentheses and a quote"),
    ],
)
def test_a_path_finds_the_first_value(path: str, want: object) -> None:
    assert first_value(path, OBJECT) == want


def test_a_path_with_many_recursive_steps_ends() -> None:
    document: object = 1
    for _ in range(60):
        document = {"a": document}

    assert first_value("..a" * 12, document) is MISSING
