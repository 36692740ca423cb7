"""Patches that copy values exponentially, have too many operations, or contain lists of tens of thousands of items."""

from __future__ import annotations

import re

import pytest

from bayplan.apiserver.patches.json_patch import MAX_COPIED_BYTES, JsonPatchError, json_patch
from bayplan.apiserver.patches.strategic import StrategicPatchError, strategic_merge
from tests.apiserver.client import JSON_PATCH, Client, Document

MAP = "/api/v1/namespaces/default/configmaps/m"
REJECTED = "the server rejected our request due to an error in our request"
POD_SPEC = "io.k8s.api.core.v1.PodSpec"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@pytest.fixture
def client() -> Client:
    made = Client()
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "x"}}
    assert made.post(MAP.removesuffix("/m"), document).status == 201
    return made


@pytest.mark.parametrize("copies", [26, 40])
def test_exponential_copies_in_a_json_patch_are_refused(client: Client, copies: int) -> None:
    operations: list[Document] = [{"op": "add", "path": "/data/a", "value": "x" * 1000}]
    operations += [{"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(copies)]
    answer = client.patch(MAP, operations, JSON_PATCH)
    assert (answer.status, answer.at("message")) == (422, REJECTED)


@pytest.mark.parametrize(
    ("count", "status", "message"),
    [
        pytest.param(10_000, 200, None, id="as many as are allowed"),
        pytest.param(
            10_001, 413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001", id="one more",
        ),
    ],
)  # fmt: skip
def test_json_patches_have_at_most_10000_operations(
    client: Client, count: int, status: int, message: str | None
) -> None:
    answer = client.patch(MAP, [{"op": "add", "path": "/data/a", "value": "y"}] * count, JSON_PATCH)
    assert answer.status == status
    if message:
        assert (answer.at("message"), answer.at("reason")) == (message, "RequestEntityTooLarge")


def test_copied_bytes_of_a_json_patch_are_limited() -> None:
    copy: Document = {"op": "copy", "from": "/a", "path": "/b"}
    quarter = "x" * (MAX_COPIED_BYTES // 4 - 2)
    assert json_patch({"a": quarter}, [copy] * 4) == {"a": quarter, "b": quarter}
    with pytest.raises(JsonPatchError, match="exceeding the limit"):
        json_patch({"a": quarter}, [copy] * 5)


def test_json_patch_copies_are_independent_and_can_be_tested() -> None:
    copy: Document = {"op": "copy", "from": "/a", "path": "/b"}
    more: list[Document] = [
        copy,
        {"op": "copy", "from": "/b", "path": "/c"},
        {"op": "test", "path": "", "value": {"a": {"x": [1]}, "b": {"x": [1]}, "c": {"x": [1]}}},
        {"op": "add", "path": "/b/x/-", "value": 2},
        {"op": "test", "path": "/b", "value": {"x": [1, 2]}},
        {"op": "move", "from": "/c/x/0", "path": "/d"},
    ]
    assert json_patch({"a": {"x": [1]}}, more) == {"a": {"x": [1]}, "b": {"x": [1, 2]}, "c": {"x": []}, "d": 1}
    with pytest.raises(JsonPatchError, match="testing value"):
        json_patch({"a": [1]}, [{"op": "test", "path": "", "value": {"a": [True]}}])


def test_repeated_insertions_into_a_long_list_are_refused() -> None:
    items = list(range(500_000))
    assert json_patch({"a": items}, [{"op": "add", "path": "/a/0", "value": 1}])
    with pytest.raises(JsonPatchError, match="move more than"):
        json_patch({"a": items}, [{"op": "add", "path": "/a/0", "value": 1}] * 2_000)


@pytest.mark.parametrize("index", ["1_0", "٣", "9" * 5000, " 1", ""])
def test_invalid_list_indexes_are_refused(index: str) -> None:
    with pytest.raises(JsonPatchError, match="missing key"):
        json_patch({"a": list(range(20))}, [{"op": "replace", "path": f"/a/{index}", "value": 1}])


def test_lists_with_30000_items_merge_strategically() -> None:
    names = [f"n{number}" for number in range(30_000)]
    old: Document = {"containers": [{"name": name, "image": "old"} for name in names]}
    patch: Document = {"containers": [{"name": name, "image": "new"} for name in reversed(names)]}
    merged = strategic_merge(POD_SPEC, old, patch)
    assert merged["containers"] == [{"name": name, "image": "new"} for name in reversed(names)]
    patch = {"containers": patch["containers"][::-1], "$setElementOrder/containers": [{"name": name} for name in names]}  # type: ignore[index]
    assert strategic_merge(POD_SPEC, old, patch)["containers"] == [{"name": name, "image": "new"} for name in names]
    deleted: Document = {"containers": [{"name": name, "$patch": "delete"} for name in names[1:]]}
    assert strategic_merge(POD_SPEC, old, deleted)["containers"] == [{"name": "n0", "image": "old"}]
    finalizers: Document = {"finalizers": names}
    gone: Document = {"$deleteFromPrimitiveList/finalizers": names[1:]}
    assert strategic_merge(META, finalizers, gone)["finalizers"] == ["n0"]


@pytest.mark.parametrize(
    ("old", "patch", "want"),
    [
        pytest.param([1, 2], [True], "list element types are not identical: [[1 2] [true]]", id="true is not 1"),
        pytest.param(["a"], [{}], "list element types are not identical: [[a] [map[]]]", id="objects"),
        pytest.param(["a"], [None], "list element types are not identical: [[a] [<nil>]]", id="null"),
        pytest.param([], [["a"]], "lists of lists are not supported", id="lists"),
    ],
)
def test_lists_of_different_types_do_not_merge(old: list[object], patch: list[object], want: str) -> None:
    with pytest.raises(StrategicPatchError, match=re.escape(want)):
        strategic_merge(META, {"finalizers": old}, {"finalizers": patch})
