"""Messages about JSON patches of webhooks and policies that cannot be applied."""

from __future__ import annotations

import pytest

from bayplan.apiserver.admission.json_patches import PatchProblem, apply_operations
from bayplan.apiserver.patches.json_patch import MAX_COPIED_BYTES
from bayplan.base.plain_data import Document

_REMOVE_MEMBER: Document = {"op": "remove", "path": "/a/b"}


def _add_map() -> Document:
    return {"op": "add", "path": "/a", "value": {"b": 1}}


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        pytest.param(
            [_REMOVE_MEMBER], "remove operation does not apply: doc is missing path: \"/a/b\": missing value", id="remove",
        ),
        pytest.param(
            [_add_map(), _REMOVE_MEMBER, _REMOVE_MEMBER],
            "error in remove for path: '/a/b': Unable to remove nonexistent key: b: missing value",
            id="the second removal of a member",
        ),
        pytest.param(
            [_add_map(), _REMOVE_MEMBER, {"op": "test", "path": "/l/0", "value": 2}],
            "testing value /l/0 failed: test failed",
            id="an operation after one that changes an added value",
        ),
        pytest.param(
            [{"op": "move", "from": "/l/0", "path": "/x/y"}],
            "move operation does not apply: doc is missing destination path: /x/y: missing value",
            id="a move whose source exists",
        ),
        pytest.param(
            [{"op": "add", "path": "/l/²/x", "value": 1}],
            'add operation does not apply: doc is missing path: "/l/²/x": missing value',
            id="an index of other digits",
        ),
        pytest.param(
            [{"op": "add", "path": "/a", "value": "x" * MAX_COPIED_BYTES}, {"op": "copy", "from": "/a", "path": "/b"}],
            f"copies of {MAX_COPIED_BYTES + 2} bytes, which is more than {MAX_COPIED_BYTES}",
            id="a copy beyond the limit",
        ),
    ],
)  # fmt: skip
def test_the_first_operation_that_cannot_be_applied_is_reported(operations: list[Document], want: str) -> None:
    with pytest.raises(PatchProblem) as raised:
        apply_operations({"l": [1]}, operations)
    assert str(raised.value) == want
