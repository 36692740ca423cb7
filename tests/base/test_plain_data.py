"""Data as decoded from JSON or YAML."""

from __future__ import annotations

import json

import pytest

from bayplan.base.plain_data import same_json, with_sorted_keys


def test_objects_of_every_depth_get_sorted_keys() -> None:
    found = with_sorted_keys({"b": [{"d": 1, "c": None}, "z", "a"], "a": {"f": [[{"h": 1, "g": 2}]], "e": 1}})
    assert json.dumps(found) == '{"a": {"e": 1, "f": [[{"g": 2, "h": 1}]]}, "b": [{"c": null, "d": 1}, "z", "a"]}'


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        ({"a": [1, {"b": True}]}, {"a": [1, {"b": True}]}, True),
        ({"a": 1}, {"a": True}, False),
        ([0], [False], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_equal_json_has_the_same_booleans(one: object, other: object, want: bool) -> None:
    assert same_json(one, other) is want
