"""Adoption of objects without a controller, and what the controllers remember about them."""

from __future__ import annotations

import pytest

from bayplan.controllers import adoption
from bayplan.controllers.adoption import SeenObjects
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.workloads import ReplicaSet
from tests.apiserver.bridge.bridge_fixture import APPS, BridgeFixture, workload


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
