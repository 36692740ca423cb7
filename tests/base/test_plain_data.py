"""Data as decoded from JSON or YAML."""

from __future__ import annotations

import json

from bayplan.base.plain_data import with_sorted_keys


def test_objects_of_every_depth_get_sorted_keys() -> None:
    found = with_sorted_keys({"b": [{"d": 1, "c": None}, "z", "a"], "a": {"f": [[{"h": 1, "g": 2}]], "e": 1}})
    assert json.dumps(found) == '{"a": {"e": 1, "f": [[{"g": 2, "h": 1}]]}, "b": [{"c": null, "d": 1}, "z", "a"]}'
