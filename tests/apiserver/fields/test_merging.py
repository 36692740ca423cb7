"""Merging applied configurations into documents, and removing fields."""

from __future__ import annotations

import pytest

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.fields.field_type import field_type
from bayplan.apiserver.fields.merging import merge, remove, with_whole_values

SPEC = field_type("io.k8s.api.core.v1.PodSpec")


def containers(*names: str) -> dict[str, object]:
    return {"containers": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("live", "config", "want"),
    [
        pytest.param("abc", "b", "abc", id="items that are not named stay"),
        pytest.param("abc", "ca", "bca", id="the configuration gives the order"),
        pytest.param("ab", "xb", "axb", id="a new item comes before the shared one that follows it"),
        pytest.param("", "ab", "ab", id="nothing there"),
        pytest.param("ab", "bc", "abc", id="a new one at the end"),
    ],
)
def test_keyed_lists_merge_in_the_order_of_the_configuration(live: str, config: str, want: str) -> None:
    assert merge(SPEC, containers(*live), containers(*config)) == containers(*want)


def test_list_items_merge_by_field_and_atomic_values_are_replaced() -> None:
    live = {"containers": [{"name": "c", "image": "i", "command": ["a", "b"]}], "nodeSelector": {"a": "1", "b": "1"}}
    config = {"containers": [{"name": "c", "command": ["x"]}], "nodeSelector": {"c": "1"}}
    assert merge(SPEC, live, config) == {
        "containers": [{"name": "c", "image": "i", "command": ["x"]}],
        "nodeSelector": {"c": "1"},
    }


def test_reapplying_an_equal_list_returns_the_same_list_object() -> None:
    live = containers("a", "b")
    merged = merge(SPEC, live, containers("a", "b"))
    assert isinstance(merged, dict)
    assert merged["containers"] is live["containers"]


def test_removing_all_items_leaves_null() -> None:
    value = {"containers": [{"name": "c", "image": "i"}, {"name": "d"}], "hostname": "h"}
    key = 'k:{"name":"c"}'
    assert remove(SPEC, value, {"f:containers": {key: {"f:image": {}}}}) == {
        "containers": [{"name": "c"}, {"name": "d"}],
        "hostname": "h",
    }
    gone: Node = {"f:containers": {key: {}, 'k:{"name":"d"}': {}}, "f:hostname": {}}
    assert remove(SPEC, value, gone) == {"containers": None}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"f:nodeSelector": {".": {}, "f:disk": {}}}, {"f:nodeSelector": {}}, id="a map"),
        pytest.param(
            {"f:affinity": {"f:nodeAffinity": {"f:requiredDuringSchedulingIgnoredDuringExecution": {"f:x": {}}}}},
            {"f:affinity": {"f:nodeAffinity": {"f:requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            id="a struct",
        ),
        pytest.param(
            {"f:containers": {'k:{"name":"c"}': {".": {}, "f:command": {"i:0": {}}}}},
            {"f:containers": {'k:{"name":"c"}': {".": {}, "f:command": {}}}},
            id="a list in an item",
        ),
        pytest.param({"f:hostname": {"f:x": {}}}, {"f:hostname": {"f:x": {}}}, id="a text has no parts"),
        pytest.param({"f:nope": {"f:x": {}}}, {"f:nope": {"f:x": {}}}, id="an unknown field"),
    ],
)
def test_parts_of_values_that_are_replaced_as_a_whole_become_the_whole(fields: Node, want: Node) -> None:
    assert with_whole_values(SPEC, fields) == want
