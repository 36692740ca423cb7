"""Events: counted when repeated, combined when similar, and limited for a source with too many."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from bayplan.apiserver.bridge.event_recorder import EventRecorder
from bayplan.apiserver.bridge.housekeeping import EventExpiry
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.node import Node
from tests.apiserver.client import Client, Document

NODE = Node(metadata=ObjectMeta(name="n", uid="u1"))


class Recording:
    """A recorder over an API, and what it has written."""

    def __init__(self) -> None:
        self.client = Client()
        self.recorder = EventRecorder(ObjectWriter(self.client.backend), lambda: int(self.client.seconds * 1e9))

    def tell(self, text: str, node: Node = NODE) -> None:
        self.recorder.record(node, "Said", text, "test", host="here")
        self.post()

    def post(self) -> None:
        while self.recorder.post_one():
            pass

    def written(self) -> list[tuple[str, object]]:
        return [(str(event["message"]), event["count"]) for event in self.events()]

    def events(self) -> list[Document]:
        return cast("list[Document]", self.client.get("/api/v1/namespaces/default/events").document["items"])


def test_node_events_are_written_to_the_default_namespace_with_all_fields() -> None:
    recording = Recording()
    recording.tell("hello")
    event = recording.events()[0]
    metadata = cast("dict[str, list[dict[str, str]]]", event.pop("metadata"))
    assert str(metadata["name"]).startswith("n.")
    assert metadata["managedFields"][0]["manager"] == "kube-controller-manager"
    assert event == {
        "involvedObject": {"kind": "Node", "name": "n", "uid": "u1", "apiVersion": "v1"},
        "reason": "Said",
        "message": "hello",
        "source": {"component": "test", "host": "here"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "test",
        "reportingInstance": "here",
    }


def test_repeated_events_increment_the_count() -> None:
    recording = Recording()
    for _ in range(3):
        recording.tell("again")
    assert recording.written() == [("again", 3)]


def test_a_repeated_event_is_recreated_after_deletion() -> None:
    recording = Recording()
    recording.tell("again")
    recording.client.delete("/api/v1/namespaces/default/events")
    recording.tell("again")
    recording.tell("again")
    assert recording.written() == [("again", 1)]


def test_similar_events_are_combined_after_ten() -> None:
    recording = Recording()
    for number in range(12):
        recording.tell(f"made {number}")
    assert recording.written()[-1] == ("(combined from similar events): made 11", 3)
    assert len(recording.written()) == 10


def test_events_of_a_source_are_limited_to_25_per_object_then_one_in_five_minutes() -> None:
    recording = Recording()
    for _ in range(40):
        recording.tell("again")
    recording.tell("of another", replace(NODE, metadata=ObjectMeta(name="m", uid="u2")))
    assert recording.written() == [("of another", 1), ("again", 25)]
    recording.client.seconds += 299
    recording.tell("again")
    assert recording.written()[-1] == ("again", 25)
    recording.client.seconds += 2
    recording.tell("again")
    assert recording.written()[-1] == ("again", 26)


def test_events_in_a_missing_namespace_are_dropped() -> None:
    recording = Recording()
    pod_like = replace(NODE, metadata=ObjectMeta(name="n", namespace="gone", uid="u1"))
    recording.recorder.record(pod_like, "Said", "hello", "test")
    recording.post()
    assert recording.written() == []


def test_the_event_limit_applies_per_object_across_field_paths() -> None:
    recording = Recording()
    for number in range(1_000):
        recording.recorder.record(NODE, "Said", f"made {number}", "test", host="here", field_path=f"part{number}")
    recording.post()
    assert len(recording.events()) == 25


def test_an_event_expires_after_its_last_occurrence() -> None:
    recording = Recording()
    client = recording.client
    expiry = EventExpiry(client.store, ObjectWriter(client.backend), ttl_ns=60 * 10**9)
    client.store.follow(lambda write: expiry.follow(write, int(client.seconds * 1e9)), expiry.begin)

    def expire() -> int:
        return expiry.expire(int(client.seconds * 1e9), most=10)

    recording.tell("once")
    recording.tell("twice")
    client.seconds += 50
    recording.tell("twice")
    client.seconds += 20
    assert expire() == 1
    assert recording.written() == [("twice", 2)]
    client.seconds += 50
    assert (expire(), recording.written()) == (1, [])
    assert expire() == 0
