"""The store: revisions, history, snapshots, and a random comparison with a naive list of versions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.apiserver.store.item import Item, Write
from bayplan.apiserver.store.listeners import Aspect
from bayplan.apiserver.store.store import Compacted, Store
from bayplan.base.errors import InvariantError


def item(store: Store, name: str, namespace: str = "a", body: bytes = b"{}") -> Item:
    return Item(body, store.revision + 1, namespace, name, "u", {}, {})


def put(store: Store, name: str, namespace: str = "a", body: bytes = b"{}") -> Item:
    made = item(store, name, namespace, body)
    store.put("pods", made)
    return made


def test_lists_are_sorted_by_key_and_can_start_at_any_key() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "m"), ("a-b", "y")):
        put(store, name, namespace)
    assert [each.key for each in store.between("pods")] == [("a", "m"), ("a", "z"), ("a-b", "y"), ("b", "x")]
    assert [each.name for each in store.between("pods", "a")] == ["m", "z"]
    assert [each.name for each in store.between("pods", "a", start="m\0")] == ["z"]
    assert [each.name for each in store.between("pods", start="a/z\0")] == ["y", "x"]


def test_stale_revisions_and_removals_of_missing_objects_are_refused() -> None:
    store = Store()
    first = put(store, "x")
    with pytest.raises(InvariantError, match="revision 1 after revision 1"):
        store.put("pods", first)
    with pytest.raises(InvariantError, match="not stored"):
        store.remove("pods", item(store, "y"))


def test_reading_before_the_compacted_revision_raises_compacted() -> None:
    store = Store()
    for name in "xyz":
        put(store, name)
    assert [each.revision for each in store.since("pods", 1)] == [2, 3]
    store.compact()
    put(store, "w")
    assert [each.revision for each in store.since("pods", 3)] == [4]
    for ask in (lambda: store.since("pods", 2), lambda: store.between("pods", at=2)):
        with pytest.raises(Compacted) as caught:
            ask()
        assert caught.value.oldest == 3


@pytest.mark.parametrize(
    ("options", "names", "want"),
    [
        pytest.param({"max_writes": 3}, "abcdefghij", 7, id="by number"),
        pytest.param({"max_bytes": 25}, "aaaaaaaaaa", 8, id="by the bytes of replaced documents"),
        pytest.param({"max_bytes": 25}, "abcdefghij", 0, id="current documents are in memory anyway"),
    ],
)
def test_history_is_limited_by_writes_and_bytes(options: dict[str, int], names: str, want: int) -> None:
    store = Store(**options)
    for name in names:
        put(store, name, body=b"0123456789")
    assert store.compacted == want
    store.check_invariants()


def test_deleted_documents_count_against_the_history_limit() -> None:
    store = Store(max_bytes=25)
    for name in "abc":
        put(store, name, body=b"0123456789")
        store.remove("pods", item(store, name, body=b"0123456789"))
    assert store.compacted == 4


def test_history_does_not_retain_watch_frames() -> None:
    store = Store()
    seen: list[object] = []

    def send(write: Write) -> None:
        seen.append(write.frames.setdefault("json", b"frame"))

    store.listen("pods", send, lambda: None)
    store.listen("pods", send, lambda: None)
    put(store, "x")
    assert seen == [b"frame", b"frame"]
    assert [write.frames for write in store.since("pods", 0)] == [{}]


def test_restoring_a_snapshot_reverts_objects_and_notifies_listeners_of_a_gap() -> None:
    store = Store()
    put(store, "x")
    gaps: list[str] = []
    writes: list[Write] = []
    token = store.listen("pods", writes.append, lambda: gaps.append("gap"))
    snapshot = store.snapshot()
    put(store, "y")
    changed = put(store, "x", body=b'{"new":1}')
    assert store.get("pods", ("a", "x")) == changed
    store.restore(snapshot)
    assert [each.name for each in store.between("pods")] == ["x"]
    assert store.get("pods", ("a", "x")) != changed
    assert gaps == ["gap"]
    assert [each.revision for each in writes] == [2, 3]
    put(store, "z")
    store.unlisten("pods", token)
    put(store, "w")
    assert [each.revision for each in writes] == [2, 3, 5]
    store.check_invariants()
    store.restore(snapshot)
    assert [each.name for each in store.between("pods")] == ["x"]


def revisions_into(reported: list[int]) -> Callable[[Write], None]:
    return lambda write: reported.append(write.revision)


@pytest.mark.parametrize("aspect", [None, Aspect("name", "", "x")])
def test_an_exception_of_a_listener_does_not_affect_others(
    aspect: Aspect | None, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(write: Write) -> None:
        raise ZeroDivisionError

    store = Store()
    seen: list[str] = []
    store.listen("pods", broken, lambda: seen.append("gap"), aspect=aspect)
    store.listen("pods", lambda write: seen.append(write.new.name), lambda: None, aspect=aspect)
    store.follow(lambda write: seen.append(f"{write.new.name} again"), lambda: None)
    put(store, "x")
    assert seen == ["gap", "x", "x again"]
    assert [(each.getMessage(), each.exc_info is not None) for each in caplog.records] == [
        ("a listener to pods failed", True)
    ]
    assert [type(each) for each in store.bugs.values()] == [ZeroDivisionError]


def test_a_listener_with_an_aspect_gets_writes_that_match_before_or_after() -> None:
    store = Store()
    heard: dict[str, list[int]] = {}
    aspects = [
        Aspect("label", "app", "x"),
        Aspect("field", "f", "1"),
        Aspect("name", "", "b"),
        Aspect("namespace", "", "n"),
    ]
    tokens = []
    for aspect in aspects:
        reported = heard[aspect.source] = []
        tokens.append(store.listen("pods", revisions_into(reported), print, aspect=aspect))

    def write(name: str, namespace: str, labels: dict[str, str], fields: dict[str, str]) -> None:
        store.put("pods", Item(b"{}", store.revision + 1, namespace, name, "u", labels, fields))

    write("a", "n", {"app": "x"}, {})
    write("a", "n", {"app": "y"}, {"f": "1"})
    write("a", "n", {"app": "y"}, {"f": "2"})
    write("b", "m", {}, {"f": "2"})
    assert heard == {"label": [1, 2], "field": [2, 3], "name": [4], "namespace": [1, 2, 3]}
    for token in tokens:
        store.unlisten("pods", token)
    write("b", "n", {"app": "x"}, {"f": "1"})
    assert heard == {"label": [1, 2], "field": [2, 3], "name": [4], "namespace": [1, 2, 3]}


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "remove"]), st.sampled_from("abc"), st.sampled_from("xyz")), max_size=40
)


@given(OPERATIONS)
def test_every_past_revision_can_be_listed(operations: list[tuple[str, str, str]]) -> None:
    store = Store()
    versions: dict[int, dict[tuple[str, str], int]] = {0: {}}
    now: dict[tuple[str, str], int] = {}
    for kind, namespace, name in operations:
        if kind == "put":
            now[(namespace, name)] = put(store, name, namespace).revision
        elif (namespace, name) in now:
            store.remove("pods", item(store, name, namespace))
            del now[(namespace, name)]
        versions[store.revision] = dict(now)
    store.check_invariants()
    for revision, expected in versions.items():
        found = {each.key: each.revision for each in store.between("pods", at=revision)}
        assert found == expected
        assert list(found) == sorted(expected)
