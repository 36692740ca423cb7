"""Changes of typed objects done to documents: only what changed, items found without keys, unknown fields kept."""

from __future__ import annotations

import pytest

from bayplan.apiserver.bridge.merging import merged

READY = {"type": "Ready", "status": "False"}


@pytest.mark.parametrize(
    ("document", "before", "after", "want"),
    [
        pytest.param({"a": 1, "x": 9}, {"a": 1}, {"a": 1}, {"a": 1, "x": 9}, id="nothing changed"),
        pytest.param({"a": 1, "x": 9}, {"a": 1}, {"a": 2}, {"a": 2, "x": 9}, id="a changed field, an unknown one kept"),
        pytest.param({"a": 1, "b": 0}, {"a": 1}, {}, {"b": 0}, id="a field at its default goes"),
        pytest.param({"b": 0}, {}, {"b": 3}, {"b": 3}, id="a field that was shown at its default gets a value"),
        pytest.param(
            {"o": {"a": 1, "x": 9}}, {"o": {"a": 1}}, {"o": {"a": 2}}, {"o": {"a": 2, "x": 9}}, id="inside an object"
        ),
        pytest.param(
            [{**READY, "lastProbeTime": None}],
            [READY],
            [{**READY, "status": "True"}],
            [{**READY, "status": "True", "lastProbeTime": None}],
            id="an item that is the same by its type keeps what is unknown",
        ),
        pytest.param(
            [{"key": "a", "x": 1}, {"key": "b", "x": 2}],
            [{"key": "a"}, {"key": "b"}],
            [{"key": "b"}],
            [{"key": "b", "x": 2}],
            id="an item that goes leaves the others as they are",
        ),
        pytest.param(
            [{"name": "a", "x": 1}],
            [{"name": "a"}],
            [{"name": "b"}, {"name": "a"}],
            [{"name": "b"}, {"name": "a", "x": 1}],
            id="a new item comes where it stands",
        ),
        pytest.param(["a", "b"], ["a", "b"], ["b", "c"], ["b", "c"], id="a list of texts"),
        pytest.param(
            [{"name": "a"}, {"name": "odd"}], [{"name": "a"}], [], [], id="lists of other lengths are taken as a whole"
        ),
        pytest.param({"a": "500m"}, {"a": "0.5"}, {"a": "0.5"}, {"a": "500m"}, id="what is written otherwise stays so"),
        pytest.param(None, {}, {"a": 1}, {"a": 1}, id="a part that was not there"),
    ],
)
def test_merged(document: object, before: object, after: object, want: object) -> None:
    assert merged(document, before, after) == want
