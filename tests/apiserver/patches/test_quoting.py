"""Quotations of strategic merge patches in errors (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

import pytest

from bayplan.apiserver.patches.quoting import as_quoted

OLD = {"metadata": {"annotations": {"a": "1"}}, "spec": {"replicas": 1}}


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}], "replicas": "x"}},
            {"spec": {"replicas": "x"}},
            id="a list with an order is consumed",
        ),
        pytest.param(
            {"metadata": {"annotations": {"$patch": "replace", "b": "2"}}},
            {"metadata": {"annotations": {"b": "2"}}},
            id="a replacement is carried out",
        ),
        pytest.param({"spec": {"x": {"y": None, "z": 1}}}, {"spec": {"x": {"z": 1}}}, id="a new part has no nulls"),
        pytest.param(
            {"spec": {"x": {"y": [{"$patch": "delete"}, {"z": 1}], "w": {"$patch": "replace"}}}},
            {"spec": {"x": {"y": [{"z": 1}]}}},
            id="a new part has no directives",
        ),
        pytest.param(
            {"metadata": {"annotations": {"$retainKeys": ["b"], "b": 1}}},
            {"metadata": {"annotations": {"b": 1}}},
            id="the keys to retain are carried out",
        ),
        pytest.param({"spec": {"replicas": None}}, {"spec": {"replicas": None}}, id="a deleted field stays null"),
    ],
)
def test_a_patch_is_quoted_as_the_library_leaves_it(patch: dict[str, object], want: dict[str, object]) -> None:
    assert as_quoted(OLD, patch) == want
