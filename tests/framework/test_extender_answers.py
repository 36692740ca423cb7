"""Responses of extenders with wrong types are refused in the words of Go's decoder (made with Go 1.26)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from bayplan.framework.extender_answers import ExtenderFailure, MetaVictims, filter_answer, meta_victims

VICTIMS = "NodeNameToMetaVictims"

WRONG: list[tuple[str, Callable[[object], object], object, str]] = [
    (
        "a pod that is a string",
        meta_victims,
        {VICTIMS: {"n": {"Pods": ["a"]}}},
        f"string into Go struct field MetaVictims.{VICTIMS}.Pods of type v1.MetaPod",
    ),
    (
        "victims that are a string",
        meta_victims,
        {VICTIMS: {"n": ""}},
        f"string into Go struct field ExtenderPreemptionResult.{VICTIMS} of type v1.MetaVictims",
    ),
    (
        "metadata that is a list",
        partial(filter_answer, by_name=True),
        {"Nodes": {"items": [{"metadata": []}]}},
        "array into Go struct field Node.Nodes.items.metadata of type v1.ObjectMeta",
    ),
    (
        "a node that is a list",
        partial(filter_answer, by_name=True),
        {"Nodes": {"items": [[1]]}},
        "array into Go struct field NodeList.Nodes.items of type v1.Node",
    ),
    (
        "a name that is a list",
        partial(filter_answer, by_name=True),
        {"Nodes": {"items": [{"metadata": {"name": []}}]}},
        "array into Go struct field ObjectMeta.Nodes.items.metadata.name of type string",
    ),
    (
        "a score above the range",
        meta_victims,
        {VICTIMS: {"n": {"NumPDBViolations": 1 << 63}}},
        f"number {1 << 63} into Go struct field MetaVictims.{VICTIMS}.NumPDBViolations of type int64",
    ),
]


@pytest.mark.parametrize(("read", "value", "want"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_wrong_type_is_reported_with_its_path(read: Callable[[object], object], value: object, want: str) -> None:
    with pytest.raises(ExtenderFailure) as problem:
        read(value)
    assert str(problem.value) == f"json: cannot unmarshal {want}"


def test_null_values_are_empty_and_field_names_are_case_insensitive() -> None:
    value = {"NODENAMES": ["a", None], "nodes": {}, "failedNodes": {"b": None}, "Error": None}
    found = filter_answer(value, by_name=True)
    assert (found.nodes, found.failed, found.bare) == (("a", ""), {"b": ""}, False)
    found = filter_answer(value, by_name=False)
    assert (found.nodes, found.failed, found.bare) == ((), {"b": ""}, True)
    assert meta_victims({VICTIMS: {"a": None, "b": {"Pods": [None, {"uid": "u"}]}}}) == {
        "a": MetaVictims((), 0),
        "b": MetaVictims(("", "u"), 0),
    }
