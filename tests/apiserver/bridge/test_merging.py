"""Changes of typed objects applied to documents: only changed fields, items matched without keys, unknown fields kept."""

from __future__ import annotations

import time

import pytest

from bayplan.apiserver.bridge.merging import merged

LONG_LIST_BUDGET_S = 10.0
"""For lists of 20,000 items; comparing every item with every other took far longer."""
READY = {"type": "Ready", "status": "False"}


@pytest.mark.parametrize(
    ("document", "before", "after", "want"),
    [
        pytest.param({"a": 1, "x": 9}, {"a": 1}, {"a": 1}, {"a": 1, "x": 9}, id="nothing changed"),
        pytest.param({"a": 1, "x": 9}, {"a": 1}, {"a": 2}, {"a": 2, "x": 9}, id="a changed field, an unknown one kept"),
        pytest.param({"a": 1, "b": 0}, {"a": 1}, {}, {"b": 0}, id="a field at its default is dropped"),
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
            id="removing an item leaves the others unchanged",
        ),
        pytest.param(
            [{"name": "a", "x": 1}],
            [{"name": "a"}],
            [{"name": "b"}, {"name": "a"}],
            [{"name": "b"}, {"name": "a", "x": 1}],
            id="a new item keeps its position",
        ),
        pytest.param(
            [{"containerPort": 1, "protocol": "TCP", "x": 1}, {"containerPort": 1, "protocol": "UDP", "x": 2}],
            [{"containerPort": 1, "protocol": "TCP"}, {"containerPort": 1, "protocol": "UDP"}],
            [{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 1, "protocol": "SCTP"}],
            [{"containerPort": 1, "protocol": "UDP", "x": 2}, {"containerPort": 1, "protocol": "SCTP", "x": 1}],
            id="of two items with one key, the equal one is found first",
        ),
        pytest.param(
            [{"a": 1, "x": 1}, {"a": 2, "x": 2}],
            [{"a": 1}, {"a": 2}],
            [{"a": 2}, {"a": 3}],
            [{"a": 2, "x": 2}, {"a": 3}],
            id="items without a key are found when equal",
        ),
        pytest.param(["a", "b"], ["a", "b"], ["b", "c"], ["b", "c"], id="a list of texts"),
        pytest.param(
            [{"name": "a"}, {"name": "odd"}], [{"name": "a"}], [], [], id="lists of other lengths are taken as a whole"
        ),
        pytest.param(
            {"a": "500m"},
            {"a": "0.5"},
            {"a": "0.5"},
            {"a": "500m"},
            id="an equal value in another notation is unchanged",
        ),
        pytest.param(None, {}, {"a": 1}, {"a": 1}, id="a missing part"),
    ],
)
def test_merged_applies_only_changes_and_preserves_unknown_fields(
    document: object, before: object, after: object, want: object
) -> None:
    assert merged(document, before, after) == want


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(("type", "status"), id="items with a key"),
        pytest.param(("a", "b"), id="items without a key"),
    ],
)
def test_long_lists_merge_in_linear_time(fields: tuple[str, str]) -> None:
    before: list[object] = [{fields[0]: f"n{number}", fields[1]: "True"} for number in range(20_000)]
    document: list[object] = [{**item, "x": 1} for item in before if isinstance(item, dict)]
    started = time.process_time()
    found = merged(document, before, [{"type": "Ready"}, *reversed(before)])
    assert found == [{"type": "Ready"}, *reversed(document)]
    assert time.process_time() - started < LONG_LIST_BUDGET_S
