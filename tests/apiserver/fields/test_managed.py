"""Field managers: ownership after updates and applies, conflicts, and removal of fields that are no longer applied."""

from __future__ import annotations

import random

import pytest

from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.compare import fields_of
from bayplan.apiserver.fields.field_set import Node, difference
from bayplan.apiserver.fields.field_type import field_type
from bayplan.apiserver.fields.managed import APPLY, UPDATE, ApplyConflict, Manager, Managers, WriteContext

Document = dict[str, object]
POD = field_type("io.k8s.api.core.v1.Pod")
MAP = field_type("io.k8s.api.core.v1.ConfigMap")
TIME = "2026-01-01T00:00:00Z"
ZERO: Document = {"metadata": {}}


def data(**values: str) -> Document:
    return {"metadata": {"name": "m"}, "data": values}


def apply(
    live: Document, config: Document, managers: Managers, who: str, *, force: bool = False
) -> tuple[Document, Managers]:
    return managed.apply(WriteContext(who, "v1", MAP, TIME), ZERO, live, config, managers, force=force)


def owned(managers: Managers) -> dict[str, list[str]]:
    """Return the data keys that each manager owns."""
    return {who.name: sorted(each.fields.get("f:data", {})) for who, each in managers.items()}


def test_a_field_no_longer_applied_is_removed_unless_another_manager_owns_it() -> None:
    live, managers = apply(ZERO, data(a="1", b="1"), {}, "one")
    live, managers = apply(live, data(b="1", c="2"), managers, "two")
    live, managers = apply(live, data(c="2"), managers, "one")
    assert live["data"] == {"b": "1", "c": "2"}
    assert owned(managers) == {"one": ["f:c"], "two": ["f:b", "f:c"]}
    live, managers = apply(live, {"metadata": {"name": "m"}}, managers, "one")
    assert live["data"] == {"b": "1", "c": "2"}
    assert owned(managers) == {"two": ["f:b", "f:c"]}


def test_applying_a_different_value_conflicts_unless_forced() -> None:
    live, managers = apply(ZERO, data(a="1", b="1"), {}, "one")
    with pytest.raises(ApplyConflict, match=r'^Apply failed with 1 conflict: conflict with "one": \.data\.a$'):
        apply(live, data(a="2"), managers, "two")
    with pytest.raises(ApplyConflict) as caught:
        apply(live, data(a="2", b="2"), managers, "two")
    text = 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'
    assert str(caught.value) == text
    live, managers = apply(live, data(a="2"), managers, "two", force=True)
    assert live["data"] == {"a": "2", "b": "1"}
    assert owned(managers) == {"one": ["f:b"], "two": ["f:a"]}


def test_an_update_takes_ownership_of_the_fields_it_changes() -> None:
    live, managers = apply(ZERO, data(a="1", b="1"), {}, "one")
    new = data(a="1", b="2")
    managers = managed.after_update(WriteContext("three", "v1", MAP, TIME), live, new, managers)
    assert owned(managers) == {"one": ["f:a"], "three": ["f:b"]}
    with pytest.raises(ApplyConflict, match=r'conflict with "three" using v1: \.data\.b'):
        apply(new, data(b="1"), managers, "one")


def test_an_untracked_object_gets_managers_on_its_first_apply_but_not_on_update() -> None:
    live, new = data(a="1"), data(a="2")
    request = WriteContext("u", "v1", MAP, TIME)
    assert managed.after_update(request, live, new, {}) == {}
    _, managers = apply(live, data(b="1"), {}, "one")
    assert owned(managers) == {"before-first-apply": [".", "f:a"], "one": ["f:b"]}


def test_reset_fields_are_never_owned() -> None:
    request = WriteContext("u", "v1", POD, TIME, reset_fields={"f:status": {}})
    new: Document = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}
    managers = managed.after_create(request, {"metadata": {}}, new, {})
    [entry] = managed.encode(managers)
    assert entry == {
        "manager": "u",
        "operation": "Update",
        "apiVersion": "v1",
        "time": TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}},
    }


def test_encoded_managers_are_sorted_and_decode_to_the_same_managers() -> None:
    managers: Managers = {
        Manager("b", UPDATE, "v1"): managed.Owned({"f:x": {}}, "v1", TIME),
        Manager("a", UPDATE, "v1", "status"): managed.Owned({"f:y": {}}, "v1", TIME),
        Manager("z", APPLY): managed.Owned({"f:z": {}}, "v1", TIME),
    }
    entries = managed.encode(managers)
    assert [each["manager"] for each in entries if isinstance(each, dict)] == ["z", "a", "b"]
    assert managed.decode(entries) == managers


def test_the_oldest_update_managers_are_merged_into_ancient_changes() -> None:
    live: Document = ZERO
    managers: Managers = {}
    for number in range(13):
        new = data(**{f"k{each}": "1" for each in range(number + 1)})
        request = WriteContext(f"m{number:02}", "v1", MAP, f"2026-01-01T00:00:{number:02}Z")
        step = managed.after_update if number else managed.after_create
        managers = step(request, live, new, managers)
        live = new
    found = owned(managers)
    assert len(found) == managed.MAX_UPDATE_MANAGERS
    assert found["ancient-changes"] == [".", "f:k0", "f:k1", "f:k2", "f:k3"]


def pods(chance: random.Random) -> Document:
    """Return a pod with some of four containers, each with some environment and ports."""
    containers: list[object] = []
    for name in chance.sample("abcd", chance.randint(1, 4)):
        container: Document = {"name": name, "image": chance.choice("xy")}
        if chance.random() < 0.6:
            container["env"] = [{"name": each, "value": chance.choice("12")} for each in chance.sample("EFG", 2)]
        if chance.random() < 0.6:
            container["ports"] = [{"containerPort": port, "name": "p"} for port in chance.sample((80, 81, 82), 2)]
        containers.append(container)
    labels = {name: chance.choice("12") for name in chance.sample("lmn", chance.randint(0, 3))}
    return {"metadata": {"name": "p", "labels": labels}, "spec": {"containers": containers}}


def test_skipping_the_pruning_of_unchanged_ownership_does_not_change_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compare with a run in which pruning is never skipped, because `difference` never returns an empty set."""
    skipped = 0
    for seed in range(300):
        chance = random.Random(seed)
        live, managers = ZERO, Managers()
        for _ in range(4):
            config = pods(chance) if seed % 2 or live is ZERO else config_with_more(live, chance)
            request = WriteContext(chance.choice(("one", "two")), "v1", POD, TIME)
            with monkeypatch.context() as patched:
                patched.setattr(managed, "difference", _never_empty)
                want = managed.apply(request, ZERO, live, config, managers, force=True)
            found = managed.apply(request, ZERO, live, config, managers, force=True)
            last = managers.get(Manager(request.manager, APPLY, ""))
            skipped += last is not None and not difference(last.fields, fields_of(POD, config))
            assert found == want
            live, managers = found
    assert skipped > 100


def config_with_more(live: Document, chance: random.Random) -> Document:
    """Return a configuration with the object's own fields and one more label."""
    metadata = live["metadata"]
    assert isinstance(metadata, dict)
    labels = {**metadata.get("labels", {}), chance.choice("lmn"): "1"}
    return {"metadata": {"name": "p", "labels": labels}, "spec": live["spec"]}


def _never_empty(left: Node, right: Node) -> Node:
    """Return the result of `difference` or, if it is empty, an unknown field: pruning runs, and ignores that field."""
    return difference(left, right) or {"f:none": {}}


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"f:data": {"f:a": {}}}, {"f:data": {"f:a": {}}}, id="a valid field set"),
        pytest.param({"f:data": {"f:a": None}}, {"f:data": {"f:a": {}}}, id="null is an empty node"),
        pytest.param({"f:data": {".": 1}}, {"f:data": {".": {}}}, id="the value of a point does not count"),
        pytest.param(None, {}, id="none at all"),
        pytest.param({"x:data": {}, "f:data": {"y:z": {}}}, {"f:data": {}}, id="elements of unknown types are dropped"),
        pytest.param({"i:x": {}}, None, id="an index that is no number"),
        pytest.param({"i:1_0": {}}, None, id="an index that is a number only in Python"),
        pytest.param({"k:x": {}}, None, id="a key that is no JSON"),
        pytest.param({"k:1": {}}, None, id="a key that is no object"),
        pytest.param({"data": {}}, None, id="an element without a type"),
        pytest.param({"f:data": {"f:a": 1}}, None, id="a number as node"),
        pytest.param({"i:1": {}, "i:01": {"f:a": {}}}, {"i:1": {".": {}, "f:a": {}}}, id="two texts of an element"),
        pytest.param({"i:1": {"f:b": {}}, "i:01": {"f:a": {}}}, {"i:1": {"f:a": {}}}, id="two texts with children"),
        pytest.param({f"v:{'[' * 100_000}": {}}, None, id="a value that is nested too deeply"),
        pytest.param({"f:data": []}, None, id="a list as node"),
        pytest.param("x", None, id="a text as field set"),
    ],
)
def test_entries_of_a_client_with_an_invalid_field_set_are_ignored(fields: object, want: object) -> None:
    entry = {"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    found = managed.decode_sent([entry], MAP, "v1")
    assert [each.fields for each in (found or {}).values()] == ([] if want is None else [want])


@pytest.mark.parametrize("change", [{"fieldsType": "FieldsV2"}, {"apiVersion": ""}, {"operation": "Patch"}])
def test_entries_of_a_client_with_an_unknown_type_version_or_operation_are_ignored(change: dict[str, object]) -> None:
    entry: dict[str, object] = {"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    assert managed.decode_sent([entry], MAP, "v1") is not None
    assert managed.decode_sent([entry | change], MAP, "v1") is None


@pytest.mark.parametrize("entries", [None, "x", [1], [None], [{}]])
def test_entries_of_a_client_that_are_no_entries_are_ignored(entries: object) -> None:
    assert managed.decode_sent(entries, MAP, "v1") is None


@pytest.mark.parametrize(("api_version", "adjusted"), [("v1", True), ("v1beta1", False)])
def test_entries_that_own_parts_of_a_value_that_is_replaced_as_a_whole_own_all_of_it(
    api_version: str, adjusted: bool
) -> None:
    parts: Node = {"f:spec": {"f:nodeSelector": {"f:disk": {}}, "f:priority": {}}}
    entry = {"manager": "a", "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1"}
    (owned,) = (managed.decode_sent([entry | {"fieldsV1": parts}], POD, "v1") or {}).values()
    assert owned.fields == ({"f:spec": {"f:nodeSelector": {}, "f:priority": {}}} if adjusted else parts)
