"""Adoption of objects without a controller, and what the controllers remember about them."""

from __future__ import annotations

import gc
from types import ModuleType
from weakref import WeakSet

import pytest

from bayplan.cluster.source_copies import SOURCE_UID
from bayplan.controllers import adoption, daemon_set_state, stateful_set
from bayplan.controllers.adoption import SeenObjects
from bayplan.controllers.revisions import RevisionHistory
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.workloads import ReplicaSet
from tests.apiserver.bridge.bridge_fixture import API, APPS, BridgeFixture, workload
from tests.apiserver.client import Document


def replica_set(uid: str) -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name="web", namespace="default", uid=uid))


def test_an_object_is_new_until_it_is_noted_and_after_it_is_recreated() -> None:
    known = SeenObjects()
    first, second = replica_set("1"), replica_set("2")
    assert known.is_new(first)
    assert known.is_new(first), "until it is noted"
    known.note(first)
    assert not known.is_new(first)
    assert known.is_new(second)
    known.note(second)
    assert len(known) == 1
    known.forget("default/web")
    assert known.is_new(second)
    assert len(known) == 0


def test_controllers_forget_deleted_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    memories: list[SeenObjects] = []

    class RecordingSeenObjects(SeenObjects):
        def __init__(self) -> None:
            super().__init__()
            memories.append(self)

    monkeypatch.setattr(adoption, "SeenObjects", RecordingSeenObjects)
    fixture = BridgeFixture(nodes=1)
    for number in range(3):
        fixture.post(f"{APPS}/deployments", workload("Deployment", f"web-{number}", {"replicas": 1}))
        fixture.run()
    assert sum(map(len, memories)) >= 3
    for number in range(3):
        fixture.delete(f"{APPS}/deployments/web-{number}")
    fixture.run(60)
    assert sum(map(len, memories)) == 0


@pytest.mark.parametrize(("kind", "module"), [("StatefulSet", stateful_set), ("DaemonSet", daemon_set_state)])
def test_controllers_forget_the_revisions_of_deleted_objects(
    kind: str, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories: WeakSet[RevisionHistory] = WeakSet()

    class RecordedHistory(RevisionHistory):
        def __init__(self) -> None:
            super().__init__()
            histories.add(self)

    monkeypatch.setattr(module, "RevisionHistory", RecordedHistory)
    fixture, plural = BridgeFixture(nodes=1), f"{kind.lower()}s"
    for number in range(3):
        spec: Document = {} if kind == "DaemonSet" else {"replicas": 1}
        fixture.post(f"{APPS}/{plural}", workload(kind, f"web-{number}", spec))
        fixture.run()
    assert len(histories) == 3
    for number in range(3):
        fixture.delete(f"{APPS}/{plural}/web-{number}")
    fixture.run(60)
    gc.collect()
    assert len(histories) == 0


def test_a_replica_set_adopts_no_copy_of_a_pod() -> None:
    fixture = BridgeFixture(nodes=1)
    metadata: Document = {"name": "copy", "labels": {"app": "x"}, "annotations": {SOURCE_UID: "1"}}
    spec: Document = {"containers": [{"name": "c", "image": "app:1"}]}
    fixture.post(f"{API}/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    fixture.run()
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 1}))
    fixture.run()
    assert len(fixture.names("pods")) == 2
    assert fixture.bridge.store.pods["default/copy"].metadata.owner_references == ()
