"""Changes of typed objects applied to documents: only changed fields, items matched without keys, unknown fields kept."""

from __future__ import annotations

import pytest

from bayplan.apiserver.bridge.merging import merged

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
def test_comparisons_grow_linearly_with_the_length_of_a_list(fields: tuple[str, str]) -> None:
    uses = 0

    class CountedItem(dict[str, object]):
        """An item that counts how often it is compared and printed."""

        __hash__ = None

        def __eq__(self, other: object) -> bool:
            nonlocal uses
            uses += 1
            return super().__eq__(other)

        def __repr__(self) -> str:
            nonlocal uses
            uses += 1
            return super().__repr__()

    def uses_for(length: int) -> int:
        nonlocal uses
        uses = 0
        before = [CountedItem({fields[0]: f"n{number}", fields[1]: "True"}) for number in range(length)]
        document = [{**item, "x": 1} for item in before]
        found = merged(document, before, [{"type": "Ready"}, *reversed(before)])
        total = uses
        assert found == [{"type": "Ready"}, *reversed(document)]
        return total

    assert 0 < uses_for(2_000) < 2.1 * uses_for(1_000)
