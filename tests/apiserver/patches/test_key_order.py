"""The order of keys in patched objects that errors quote (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

import json
from typing import cast

import pytest

from bayplan.apiserver.patches.json_patch import json_patch
from bayplan.apiserver.patches.key_order import in_go_order, opened_by_merge

POLICY = {
    "metadata": {
        "finalizers": ["a"],
        "labels": {"b": "1", "a": "2"},
        "managedFields": [{"fieldsV1": {"f:spec": {"f:b": {}, "f:a": {}}}, "manager": "m"}],
        "name": "web",
    },
    "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}], "x": 1},
}
ORDERED = cast("dict[str, object]", in_go_order("io.k8s.api.networking.v1.NetworkPolicy", POLICY))


def test_fields_are_in_the_order_of_the_go_type_and_keys_of_maps_are_sorted() -> None:
    assert json.dumps(ORDERED, separators=(",", ":")) == (
        '{"metadata":{"name":"web","labels":{"a":"2","b":"1"},"finalizers":["a"],'
        '"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{"f:a":{},"f:b":{}}}}]},'
        '"spec":{"podSelector":{},"ingress":[{"ports":[{"protocol":"TCP","port":80}]}],"x":1}}'
    )


def test_names_in_a_map_of_structs_are_sorted_and_not_treated_as_fields() -> None:
    value = {"properties": {"type": {"type": "string", "description": "d"}, "default": {}, "items": {}}}
    found = in_go_order("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", value)
    assert json.dumps(found) == (
        '{"properties": {"default": {}, "items": {}, "type": {"description": "d", "type": "string"}}}'
    )


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        pytest.param({"spec": {"x": 2}}, ["ingress", "podSelector", "x"], id="a field of the spec is changed"),
        pytest.param({"spec": "x", "metadata": {}}, ["podSelector", "ingress", "x"], id="the spec is replaced"),
    ],
)
def test_a_merge_patch_sorts_the_objects_that_it_opens(patch: dict[str, object], want: list[str]) -> None:
    spec = opened_by_merge(ORDERED, patch)["spec"]
    assert isinstance(spec, dict)
    assert list(spec) == want


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        pytest.param(
            {"op": "add", "path": "/spec/ingress/0/ports/-"}, ["ingress", "podSelector", "x"], id="an added element"
        ),
        pytest.param(
            {"op": "copy", "from": "/spec/x", "path": "/x"}, ["ingress", "podSelector", "x"], id="a copied value"
        ),
        pytest.param(
            {"op": "copy", "from": "/spec", "path": "/spec2"}, ["podSelector", "ingress", "x"], id="a copied object"
        ),
        pytest.param(
            {"op": "test", "path": "/spec", "value": POLICY["spec"]},
            ["ingress", "podSelector", "x"],
            id="a compared object",
        ),
        pytest.param({"op": "remove", "path": "/metadata/name"}, ["podSelector", "ingress", "x"], id="another object"),
    ],
)
def test_a_json_patch_sorts_the_objects_on_its_paths(operation: dict[str, object], want: list[str]) -> None:
    found = json_patch(ORDERED, [operation])
    assert isinstance(found, dict)
    assert list(found["spec"]) == want


def test_a_copy_in_a_json_patch_has_the_order_of_keys_at_that_time() -> None:
    operations: list[dict[str, object]] = [
        {"op": "add", "path": "/spec/a", "value": {"z": 1, "y": 2}},
        {"op": "copy", "from": "/spec", "path": "/copy"},
        {"op": "test", "path": "/spec/a/z", "value": 1},
    ]
    found = json_patch(ORDERED, operations)
    assert isinstance(found, dict)
    assert [list(found["spec"]["a"]), list(found["copy"]["a"])] == [["y", "z"], ["z", "y"]]
    assert list(found["copy"]) == ["a", "ingress", "podSelector", "x"]
