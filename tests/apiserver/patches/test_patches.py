"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

import json

import pytest

from bayplan.apiserver.patches.json_patch import JsonPatchError, check_spelling, json_patch, merge_patch
from bayplan.apiserver.patches.strategic import StrategicPatchError, strategic_merge

Document = dict[str, object]
DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        pytest.param({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2], "b": {"c/d": 3}}, id="into a list"),
        pytest.param({"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 2, 9], "b": {"c/d": 3}}, id="at the end"),
        pytest.param({"op": "add", "path": "/a/-1", "value": 9}, {"a": [1, 2, 9], "b": {"c/d": 3}}, id="from the end"),
        pytest.param({"op": "replace", "path": "/a/-1", "value": 9}, {"a": [1, 9], "b": {"c/d": 3}}, id="the last"),
        pytest.param({"op": "replace", "path": "", "value": {}}, {}, id="the whole document"),
        pytest.param(
            {"op": "add", "path": "ignored/x", "value": 9}, {"a": [1, 2], "b": {"c/d": 3}, "x": 9}, id="prefix"
        ),
        pytest.param(
            {"op": "copy", "from": "/z", "path": "/x"}, {"a": [1, 2], "b": {"c/d": 3}, "x": None}, id="absent"
        ),
        pytest.param({"op": "test", "path": "/z", "value": None}, {"a": [1, 2], "b": {"c/d": 3}}, id="null is absent"),
        pytest.param({"op": "remove", "path": "/b/c~1d"}, {"a": [1, 2], "b": {}}, id="with an escape"),
        pytest.param({"op": "replace", "path": "/a/0", "value": 9}, {"a": [9, 2], "b": {"c/d": 3}}, id="replace"),
        pytest.param({"op": "move", "from": "/a/0", "path": "/x"}, {"a": [2], "b": {"c/d": 3}, "x": 1}, id="move"),
        pytest.param(
            {"op": "copy", "from": "/b", "path": "/x"}, {"a": [1, 2], "b": {"c/d": 3}, "x": {"c/d": 3}}, id="copy"
        ),
        pytest.param({"op": "test", "path": "/a", "value": [1, 2]}, {"a": [1, 2], "b": {"c/d": 3}}, id="test"),
    ],
)
def test_json_patch_operations_return_a_patched_copy(operation: Document, want: Document) -> None:
    document: Document = {"a": [1, 2], "b": {"c/d": 3}}
    assert json_patch(document, [operation]) == want
    assert document == {"a": [1, 2], "b": {"c/d": 3}}


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        pytest.param(
            [
                {"op": "copy", "from": "/b", "path": "/a/0"},
                {"op": "add", "path": "/a/0/x", "value": {"z": 1, "y": 2}},
                {"op": "copy", "from": "/a/0/x", "path": "/b/c~0d"},
                {"op": "replace", "path": "/b/c~0d/z", "value": [1]},
                {"op": "test", "path": "/a/0/x/z", "value": 1},
                {"op": "move", "from": "/a/0/x", "path": "/a/-2"},
            ],
            {"a": [{"c/d": 3}, 1, {"z": 1, "y": 2}, 2], "b": {"c/d": 3, "c~d": {"z": [1], "y": 2}}},
            id="copies are independent",
        ),
        pytest.param(
            [
                {"op": "move", "from": "/a/0", "path": "/a/-"},
                {"op": "move", "from": "/a/-1", "path": "/a/0"},
                {"op": "remove", "path": "/a/-1"},
                {"op": "add", "path": "/a/-1", "value": None},
                {"op": "test", "path": "/a/-1", "value": None},
            ],
            {"a": [1, None], "b": {"c/d": 3}},
            id="items move in a list",
        ),
        pytest.param(
            [
                {"op": "replace", "path": "", "value": {"n": {"m": [{}]}}},
                {"op": "replace", "path": "/n/new", "value": 1},
                {"op": "add", "path": "/n/m/0/k"},
                {"op": "test", "path": "", "value": {"n": {"m": [{"k": None}], "new": 1}}},
                {"op": "copy", "from": "/n", "path": "/n/m/0/n"},
            ],
            {"n": {"m": [{"k": None, "n": {"m": [{"k": None}], "new": 1}}], "new": 1}},
            id="the whole document is replaced",
        ),
    ],
)
def test_json_patch_operations_work_on_the_result_of_earlier_ones(operations: list[Document], want: Document) -> None:
    assert json_patch({"a": [1, 2], "b": {"c/d": 3}}, operations) == want


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "remove", "path": "/nope"}, id="nothing to remove"),
        pytest.param({"op": "replace", "path": "/nope/a", "value": 1}, id="nothing to replace anything in"),
        pytest.param({"op": "test", "path": "/a/0", "value": True}, id="a number is not a boolean"),
        pytest.param({"op": "add", "path": "/a/9", "value": 1}, id="beyond the end"),
        pytest.param({"op": "frobnicate", "path": "/a"}, id="an unknown operation"),
        pytest.param({"op": "add", "path": "a", "value": 1}, id="no pointer"),
    ],
)
def test_invalid_json_patch_operations_are_refused(operation: Document) -> None:
    with pytest.raises(JsonPatchError):
        json_patch({"a": [1, 2]}, [operation])


@pytest.mark.parametrize(
    ("patch", "passes"),
    [
        pytest.param('[{"op":"test","path":"/a","value":"<"}]', False, id="a text that Go escapes"),
        pytest.param('[{"op":"test","path":"/a","value":"\\u003c"}]', True, id="the same escape"),
        pytest.param('[{"op":"test","path":"/b","value":"\\u0062"}]', False, id="an escape of a plain letter"),
        pytest.param(
            '[{"op":"add","path":"/a","value":"<"},{"op":"test","path":"/a","value":"<"}]',
            True,
            id="a text of the patch",
        ),
        pytest.param('[{"op":"add","path":"/c","value":"<"}]', True, id="no test"),
        pytest.param('[{"op":"test","path":"/m/a&b","value":1}]', True, id="a pointer that Go escapes"),
        pytest.param('[{"op":"test","path":"/m","value":{"a&b":1,"\\"":"x"}}]', True, id="a key that Go escapes"),
        pytest.param('[{"op":"test","path":"/m","value":{"a\\u0026b":1,"\\u0022":"x"}}]', True, id="an escaped key"),
        pytest.param(
            '[{"op":"add","path":"/c","value":{"\\ud800":"<"}},{"op":"test","path":"/c/\ufffd","value":"<"}]',
            True,
            id="half of a surrogate pair in a key",
        ),
        pytest.param(
            '[{"op":"test","path":"/b","value":"b"},{"op":"remove","path":"/m/a&b"}]', True, id="a removed key"
        ),
        pytest.param(
            '[{"\\u006fp":"t\\u0065st","path":"/m/a\\u0026b","value":1}]', True, id="an escaped operation and pointer"
        ),
    ],
)
def test_tests_of_a_json_patch_compare_the_spelling_of_texts(patch: str, passes: bool) -> None:
    document, operations = {"a": "<", "b": "b", "m": {"a&b": 1, '"': "x"}}, json.loads(patch.replace("ud800", "ufffd"))
    json_patch(document, operations)

    if passes:
        check_spelling(document, operations, patch.encode())
    else:
        with pytest.raises(JsonPatchError):
            check_spelling(document, operations, patch.encode())


def test_merge_patch_replaces_values_and_removes_nulls() -> None:
    document = {"a": {"b": 1, "c": 2}, "d": [1]}
    assert merge_patch(document, {"a": {"b": None, "e": {"f": None}}, "d": [2]}) == {"a": {"c": 2, "e": {}}, "d": [2]}
    assert merge_patch(document, [1]) == [1]
    assert merge_patch(document, {"d": [{"x": None, "y": 1}, None]})["d"] == [{"y": 1}, None]  # type: ignore[index]


def deployment(**spec: object) -> Document:
    return {"spec": {"template": {"spec": spec}}}


ONE: Document = {"name": "one", "image": "i", "env": [{"name": "A", "value": "1"}]}
TWO: Document = {"name": "two"}


@pytest.mark.parametrize(
    ("old", "patch", "want"),
    [
        pytest.param(
            deployment(containers=[ONE, TWO]),
            deployment(containers=[{"name": "one", "image": "j"}]),
            deployment(containers=[{**ONE, "image": "j"}, TWO]),
            id="an item by its key",
        ),
        pytest.param(
            deployment(containers=[ONE, TWO]),
            deployment(containers=[{"name": "three"}]),
            deployment(containers=[{"name": "three"}, ONE, TWO]),
            id="a new item comes first",
        ),
        pytest.param(
            deployment(containers=[ONE, TWO]),
            deployment(containers=[{"name": "one", "$patch": "delete"}]),
            deployment(containers=[TWO]),
            id="an item is deleted",
        ),
        pytest.param(
            deployment(containers=[ONE, TWO]),
            deployment(containers=[{"$patch": "replace"}, {"name": "x"}]),
            deployment(containers=[{"name": "x"}]),
            id="a list is replaced",
        ),
        pytest.param(
            deployment(containers=[ONE, TWO]),
            deployment(
                **{
                    "$setElementOrder/containers": [{"name": "two"}, {"name": "one"}],
                    "containers": [{"name": "one", "tty": True}],
                }
            ),
            deployment(containers=[TWO, {**ONE, "tty": True}]),
            id="items in an order",
        ),
        pytest.param(
            deployment(tolerations=[{"key": "a"}]),
            deployment(tolerations=[{"key": "b"}]),
            deployment(tolerations=[{"key": "b"}]),
            id="an atomic list",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
            id="out of a list of texts",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b", "a"]}},
            {"metadata": {"finalizers": ["b", "a"]}},
            id="into a list of texts",
        ),
        pytest.param(
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            id="keys that are kept",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"$patch": "replace", "b": "1"}}},
            {"metadata": {"labels": {"b": "1"}}},
            id="a map is replaced",
        ),
        pytest.param(
            {"metadata": {}},
            {"metadata": {"labels": {"$patch": "replace", "b": "1"}}},
            {"metadata": {}},
            id="a missing item is not removed",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"a": None}}},
            {"metadata": {"labels": {}}},
            id="null deletes",
        ),
    ],
)
def test_strategic_merge_follows_keys_and_directives(old: Document, patch: Document, want: Document) -> None:
    assert strategic_merge(DEPLOYMENT, old, patch) == want


@pytest.mark.parametrize(
    ("patch", "code", "want"),
    [
        pytest.param(
            {"spec": {"$patch": "explode"}},
            500,
            "unknown patch type: explode in map: map[$patch:explode]",
            id="an unknown directive",
        ),
        pytest.param(
            {"spec": {"$patch": "merge"}},
            500,
            "unknown patch type: merge in map: map[$patch:merge]",
            id="the directive merge",
        ),
        pytest.param(
            deployment(containers=[{"$patch": "merge", "name": "a"}]),
            500,
            "merging lists cannot yet be specified in the patch",
            id="the directive merge in a list",
        ),
        pytest.param(
            deployment(containers=[{"$patch": "delete"}]),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
            id="a deletion without its key",
        ),
        pytest.param(
            deployment(containers=[{"image": "i"}]),
            500,
            "map: map[image:i] does not contain declared merge key: name",
            id="an item without its key",
        ),
        pytest.param(
            {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}},
            400,
            "invalid patch format of retainKeys",
            id="a field that is not kept",
        ),
        pytest.param(
            deployment(**{"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}),
            500,
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
            id="an order without an item of the patch",
        ),
        pytest.param(
            deployment(**{"$setElementOrder/containers": "a"}),
            500,
            "expected a []interface {}, but received a string",
            id="an order that is not a list",
        ),
        pytest.param(
            deployment(**{"$setElementOrder/containers": [{"name": "x"}, 1]}),
            500,
            "value for key 1 is not a map",
            id="an order with an item that is not a map",
        ),
    ],
)
def test_invalid_strategic_patches_are_refused(patch: Document, code: int, want: str) -> None:
    with pytest.raises(StrategicPatchError) as problem:
        strategic_merge(DEPLOYMENT, {"spec": {"strategy": {}, **deployment(containers=[ONE])["spec"]}}, patch)  # type: ignore[dict-item]
    assert (problem.value.code, str(problem.value)) == (code, want)
