"""The typed store: follows every write, in order and after snapshots; reports and skips what it can't decode."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.apiserver.bridge.bridge import Bridge
from bayplan.apiserver.store.item import Item
from bayplan.cluster.store import ChangeEvent
from bayplan.objects.namespace import Namespace
from bayplan.objects.pod import Pod
from tests.apiserver.client import PODS, Client, pod


class RecordingListener:
    """A listener that records its notifications."""

    def __init__(self) -> None:
        self.events: list[ChangeEvent] = []

    def __call__(self, events: Sequence[ChangeEvent]) -> None:
        self.events += events

    def lines(self) -> list[str]:
        """Return the recorded notifications, and clear them."""
        events, self.events = self.events, []
        return [f"{event.type} {event.kind.__name__} {event.object.key}" for event in events]


def test_listeners_receive_all_objects_then_changes_in_order() -> None:
    client = Client()
    client.post(PODS, pod("a"))
    bridge, reported = Bridge(client.backend, seed=1), RecordingListener()
    bridge.listen(reported)
    revisions = [event.resource_version for event in reported.events]
    assert revisions == sorted(revisions)
    assert reported.lines()[-1] == "ADDED Pod default/a"
    client.post(PODS, pod("b"))
    client.patch(f"{PODS}/b", {"metadata": {"labels": {"x": "y"}}})
    client.delete(f"{PODS}/a")
    assert reported.events == []
    bridge.flush()
    assert reported.lines() == [
        "ADDED Pod default/b",
        "MODIFIED Pod default/b",
        "MODIFIED Pod default/a",
        "DELETED Pod default/a",
    ]
    bridge.check()


def test_pods_of_one_template_share_spec_and_labels_even_after_binding() -> None:
    client = Client()
    bridge = Bridge(client.backend, seed=1)
    for name in ("a", "b"):
        manifest = pod(name)
        manifest["metadata"] = {"name": name, "labels": {"app": "x"}}
        client.post(PODS, manifest)
    client.post(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n1"}})
    a, b = bridge.store.pods["default/a"], bridge.store.pods["default/b"]
    assert a.spec.node_name == "n1"
    assert a.spec.containers is b.spec.containers
    assert a.metadata.labels is b.metadata.labels
    before = a
    client.patch(f"{PODS}/a", {"metadata": {"annotations": {"x": "y"}}})
    assert bridge.store.pods["default/a"].spec is before.spec
    bridge.check()


def test_restoring_a_snapshot_emits_the_difference_as_changes() -> None:
    client = Client()
    client.post(PODS, pod("stays"))
    client.post(PODS, pod("comes-back"))
    client.post(PODS, pod("changes"))
    snapshot = client.store.snapshot()
    bridge, reported = Bridge(client.backend, seed=1), RecordingListener()
    bridge.listen(reported)
    client.delete(f"{PODS}/comes-back")
    client.patch(f"{PODS}/changes", {"metadata": {"labels": {"x": "y"}}})
    client.post(PODS, pod("goes"))
    bridge.flush()
    reported.lines()
    client.store.restore(snapshot)
    bridge.flush()
    assert all(event.resource_version == client.store.revision for event in reported.events)
    assert sorted(reported.lines()) == [
        "ADDED Pod default/comes-back",
        "DELETED Pod default/goes",
        "MODIFIED Pod default/changes",
    ]
    bridge.check()


def test_undecodable_objects_are_reported_and_skipped() -> None:
    client = Client()
    client.post(PODS, pod("p"))
    bridge = Bridge(client.backend, seed=1)
    raw = b'{"metadata":{"name":"p","namespace":"default"},"spec":{"priority":"high"}}'
    client.store.put("pods", Item(raw, client.store.revision + 1, "default", "p", "u", {}, {}))
    assert "priority" in str(bridge.store.undecodable["pods default/p"])
    assert bridge.store.get(Pod, "default/p") is None
    assert bridge.store.get(Namespace, "default") is not None
    bridge.check()
    client.delete(f"{PODS}/p")
    assert not bridge.store.undecodable
    bridge.check()
