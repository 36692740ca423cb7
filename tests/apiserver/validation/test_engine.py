"""The validation engine: the errors of rules, their paths, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.validation import engine as e

Document = dict[str, Any]


def found(rule: e.Rule, document: Document, path: str = "spec") -> list[tuple[str, str]]:
    causes: list[Cause] = []
    rule(document, path, causes)
    return [(each.field, each.message) for each in causes]


NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"
ITEM = e.each("items", e.need("name"), e.field("size", e.at_least(0)))


@pytest.mark.parametrize(
    ("rule", "document", "want"),
    [
        pytest.param(e.field("n", e.at_least(0)), {}, [], id="a missing field is not checked"),
        pytest.param(e.field("n", e.at_least(0)), {"n": -1}, [("spec.n", NEGATIVE)], id="a present field is checked"),
        pytest.param(
            e.number("n", e.at_least(1)),
            {},
            [("spec.n", "Invalid value: 0: must be greater than or equal to 1")],
            id="a missing number counts as 0",
        ),
        pytest.param(e.need("n"), {"n": ""}, [("spec.n", "Required value")], id="an empty text is missing"),
        pytest.param(e.need_set("n"), {"n": ""}, [], id="unless the field may be empty"),
        pytest.param(e.need("n"), {"n": 0}, [], id="0 is not empty"),
        pytest.param(e.inside("a", e.need("b")), {}, [("spec.a.b", "Required value")], id="a missing struct is empty"),
        pytest.param(e.optional("a", e.need("b")), {}, [], id="unless it is optional"),
        pytest.param(
            ITEM,
            {"items": [{"name": "x"}, {"size": -1}]},
            [("spec.items[1].name", "Required value"), ("spec.items[1].size", NEGATIVE)],
            id="structs of a list are checked in order, each rule in order",
        ),
        pytest.param(
            e.unique("items", "name", at="name"),
            {"items": [{"name": "x"}, {"name": "y"}, {"name": "x"}]},
            [("spec.items[2].name", 'Duplicate value: "x"')],
            id="the second of two equal keys is the duplicate",
        ),
        pytest.param(
            e.when(lambda spec: spec.get("on") is True, e.need("n"), otherwise=(e.forbid("n", "only when on"),)),
            {"n": 1},
            [("spec.n", "Forbidden: only when on")],
            id="a condition that is not met runs the other rules",
        ),
        pytest.param(
            e.field("mode", e.one_of("B", "A")),
            {"mode": "C"},
            [("spec.mode", 'Unsupported value: "C": supported values: "B", "A"')],
            id="choices are listed in the order of the table",
        ),
        pytest.param(
            e.field("names", e.items(e.max_bytes(2))),
            {"names": ["ab", "abc"]},
            [("spec.names[1]", "Too long: may not be more than 2 bytes")],
            id="values of a list are checked under their index",
        ),
        pytest.param(
            e.field("names", e.items_here(e.max_bytes(2))),
            {"names": ["abc"]},
            [("spec.names", "Too long: may not be more than 2 bytes")],
            id="or under the path of the list",
        ),
        pytest.param(
            e.field("names", e.max_items(1)),
            {"names": ["a", "b"]},
            [("spec.names", "Too many: 2: must have at most 1 item")],
            id="a list with too many items",
        ),
        pytest.param(
            e.field("names", e.distinct()),
            {"names": ["a", "a"]},
            [("spec.names[1]", 'Duplicate value: "a"')],
            id="a repeated value",
        ),
    ],
)
def test_rules_report_the_path_and_message_of_each_problem(
    rule: e.Rule, document: Document, want: list[tuple[str, str]]
) -> None:
    assert found(rule, document) == want


IMMUTABLE = e.immutable("spec.name")


@pytest.mark.parametrize(
    ("change", "new", "old", "want"),
    [
        pytest.param(IMMUTABLE, {"name": "a"}, {"name": "a"}, [], id="nothing has changed"),
        pytest.param(IMMUTABLE, {}, {"name": ""}, [], id="missing and empty are the same"),
        pytest.param(
            IMMUTABLE,
            {"name": "b"},
            {"name": "a"},
            ['Invalid value: "b": field is immutable'],
            id="the new value is reported",
        ),
        pytest.param(
            IMMUTABLE, {}, {"name": "a"}, ["Invalid value: null: field is immutable"], id="a removed one is null"
        ),
        pytest.param(
            e.immutable("spec.name", zero=""),
            {},
            {"name": "a"},
            ['Invalid value: "": field is immutable'],
            id="or zero",
        ),
        pytest.param(
            e.forbid_change("spec.name", "it stays"),
            {"name": "b"},
            {"name": "a"},
            ["Forbidden: it stays"],
            id="forbidden",
        ),
    ],
)
def test_changes_to_immutable_fields_are_reported(
    change: e.Change, new: Document, old: Document, want: list[str]
) -> None:
    causes: list[Cause] = []
    change({"spec": new}, {"spec": old}, causes)
    assert [each.message for each in causes] == want
    assert all(each.field == "spec.name" for each in causes)


def test_update_runs_the_before_create_and_after_rules_in_order() -> None:
    order: list[str] = []
    rules = e.kind(
        lambda _document, _path, _out: order.append("create"),
        before=[lambda _new, _old, _out: order.append("before")],
        after=[lambda _new, _old, _out: order.append("after")],
        status=[lambda _new, _old, _out: order.append("status")],
    )
    rules.update({}, {}, [])
    rules.status({}, {}, [])
    assert order == ["before", "create", "after", "status"]


def test_sent_distinguishes_an_empty_list_from_a_missing_one() -> None:
    document = Emptied({"a": 1}, {"names": []})
    assert e.sent(document, "names") == []
    assert e.sent(document, "other") is None
    assert e.sent(e.copied(document), "names") == []
