"""JSON paths of printer columns."""

from __future__ import annotations

import pytest

from bayplan.apiserver.tables.json_paths import MISSING, first_value

OBJECT = {
    "a": {"b/c.d": 1, "null": None},
    "list": [1, 2, 3],
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
        pytest.param(".conditions[*].ok", True, id="the first item that has a field"),
        pytest.param("..type", "Other", id="anywhere"),
        pytest.param(".conditions[?(@.type", MISSING, id="a malformed path"),
    ],
)
def test_a_path_finds_the_first_value(path: str, want: object) -> None:
    assert first_value(path, OBJECT) == want
