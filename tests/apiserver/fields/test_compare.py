"""Differences between two documents, and the field set of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.apiserver.fields.compare import compare, fields_of
from bayplan.apiserver.fields.field_set import Node, difference, intersection, paths, union, without
from bayplan.apiserver.fields.field_type import UNTYPED, field_type

POD = field_type("io.k8s.api.core.v1.Pod")
VOLUME = field_type("io.k8s.api.core.v1.PersistentVolume")
KEY = 'k:{"name":"c"}'


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            {},
            {"metadata": {"labels": {"a": "b"}}},
            ({"f:metadata": {".": {}, "f:labels": {".": {}, "f:a": {}}}}, {}, {}),
            id="added with its content",
        ),
        pytest.param({"spec": {"x": {}}}, {"spec": {"x": {}}}, ({}, {}, {}), id="the same"),
        pytest.param(
            {"spec": {"containers": None}},
            {"spec": {"containers": [{"name": "c", "image": "i"}]}},
            ({"f:spec": {"f:containers": {KEY: {".": {}, "f:name": {}, "f:image": {}}}}}, {}, {}),
            id="items are added to an existing list",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "c", "image": "i"}]}},
            {"spec": {"containers": [{"name": "c", "image": "j"}]}},
            ({}, {"f:spec": {"f:containers": {KEY: {"f:image": {}}}}}, {}),
            id="an item is found by its key",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            ({}, {"f:spec": {"f:tolerations": {}}}, {}),
            id="an atomic list is one value",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "b"}}},
            {"metadata": {}},
            ({}, {}, {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}),
            id="removed",
        ),
    ],
)
def test_compare_returns_added_modified_and_removed_fields(
    old: dict[str, object], new: dict[str, object], want: tuple[Node, Node, Node]
) -> None:
    assert tuple(compare(POD, old, new)) == want


def test_list_keys_include_defaults_and_a_granular_field_overrides_an_atomic_type() -> None:
    ports = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}}
    assert fields_of(POD, ports) == {
        "f:spec": {
            "f:containers": {
                KEY: {
                    ".": {},
                    "f:name": {},
                    "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                }
            }
        }
    }
    claim = {"spec": {"claimRef": {"name": "c"}}}
    assert fields_of(VOLUME, claim) == {"f:spec": {"f:claimRef": {"f:name": {}}}}


def test_untyped_maps_are_granular_and_untyped_lists_atomic() -> None:
    assert fields_of(UNTYPED, {"a": {"b": 1, "c": [1]}}) == {"f:a": {".": {}, "f:b": {}, "f:c": {}}}


LEAF: Node = {}
NODES = st.recursive(
    st.just(LEAF),
    lambda inner: st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), inner, max_size=3).flatmap(
        lambda node: st.sampled_from([node, {".": LEAF, **node} if node else node])
    ),
    max_leaves=8,
).filter(lambda node: "." not in node)


def members(node: Node) -> set[str]:
    return set(paths(node))


@given(NODES, NODES)
def test_field_set_operations_match_python_set_operations(left: Node, right: Node) -> None:
    assert members(union(left, right)) == members(left) | members(right)
    assert members(difference(left, right)) == members(left) - members(right)
    assert members(intersection(left, right)) == members(left) & members(right)
    above = members(right)
    kept = {path for path in members(left) if not any(path == each or path.startswith(f"{each}.") for each in above)}
    assert members(without(left, right)) == kept
