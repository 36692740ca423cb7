"""The index of events by object."""

from __future__ import annotations

import pytest

from bayplan.http_api.event_index import MAX_EVENTS, EventIndex
from tests.apiserver.client import Client, Document

PATH = "/api/v1/namespaces/default/events"


def _event(name: str, reason: str, *, hour: int) -> Document:
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": f"2026-01-01T{hour:02}:00:00Z"}
    return {"metadata": {"name": name}, "involvedObject": involved, "reason": reason, "type": "Normal", **times}


def _reasons(index: EventIndex) -> list[str]:
    return [event.reason for event in index.of("Pod", "default", "p")]


@pytest.mark.parametrize("restarted", [False, True])
def test_an_updated_event_is_among_the_newest(restarted: bool) -> None:
    cluster = Client()
    index = EventIndex(cluster.backend)
    cluster.post(PATH, _event("a", "FailedScheduling", hour=1))
    for number in range(MAX_EVENTS):
        cluster.post(PATH, _event(f"b{number:03}", "Pulled", hour=2))
    cluster.put(f"{PATH}/a", _event("a", "FailedScheduling", hour=3))
    if restarted:
        index = EventIndex(cluster.backend)
    assert _reasons(index) == ["Pulled"] * (MAX_EVENTS - 1) + ["FailedScheduling"]


def test_a_deleted_event_is_removed() -> None:
    cluster = Client()
    index = EventIndex(cluster.backend)
    for name in ("a", "b"):
        cluster.post(PATH, _event(name, name, hour=1))
    cluster.delete(f"{PATH}/a")
    assert _reasons(index) == ["b"]
    cluster.delete(f"{PATH}/b")
    assert _reasons(index) == []
