"""Messages about JSON patches of webhooks and policies that cannot be applied."""

from __future__ import annotations

import pytest

from bayplan.apiserver.patches.json_patch import MAX_COPIED_BYTES, JsonPatchError, patch_object
from bayplan.base.plain_data import Document

_REMOVE: Document = {"op": "remove", "path": "/a/b"}


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        pytest.param(
            [_REMOVE], 'remove operation does not apply: doc is missing path: "/a/b": missing value', id="no parent",
        ),
        pytest.param(
            [{"op": "add", "path": "/a", "value": {"b": 1}}, _REMOVE, _REMOVE],
            "error in remove for path: '/a/b': Unable to remove nonexistent key: b: missing value",
            id="the second removal of a member",
        ),
        pytest.param(
            [{"op": "move", "from": "/l/0", "path": "/x/y"}],
            "move operation does not apply: doc is missing destination path: /x/y: missing value",
            id="a move without a destination",
        ),
        pytest.param(
            [{"op": "move", "from": "/l/0", "path": "/l/5"}],
            "error in move for path: '/l/5': Unable to access invalid index: 5: invalid index referenced",
            id="a move beyond the end",
        ),
        pytest.param(
            [{"op": "add", "path": "/l/x", "value": 1}],
            "error in add for path: '/l/x': value was not a proper array index: 'x': "
            'strconv.Atoi: parsing "x": invalid syntax',
            id="an addition at no index",
        ),
        pytest.param(
            [{"op": "test", "path": f"/l/{2**63}", "value": 1}],
            f"error in test for path: '/l/{2**63}': strconv.Atoi: parsing \"{2**63}\": value out of range",
            id="an index beyond 64 bits",
        ),
        pytest.param([{"op": "copy", "path": "/x"}],
            "copy operation failed to decode from: operation, missing from field: missing value", id="no source"),
        pytest.param([{"path": "/x"}], "Unexpected kind: unknown", id="no operation"),
        pytest.param(
            [{"op": "add", "path": "/a", "value": "x" * MAX_COPIED_BYTES}, {"op": "copy", "from": "/a", "path": "/b"}],
            "Unable to complete the copy, the accumulated size increase of copy is "
            f"{MAX_COPIED_BYTES + 2}, exceeding the limit {MAX_COPIED_BYTES}",
            id="a copy beyond the limit",
        ),
    ],
)  # fmt: skip
def test_messages_are_those_of_upstreams_library(operations: list[Document], want: str) -> None:
    with pytest.raises(JsonPatchError) as raised:
        patch_object({"l": [1]}, operations)
    assert str(raised.value) == want
