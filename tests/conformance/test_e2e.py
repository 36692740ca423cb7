"""Whole runs: masked values, significant order, and interchangeable names."""

from __future__ import annotations

import pytest

from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.comparer import differ
from bayplan.conformance.e2e_runs import comparable_run_parts

UID, OTHER = "04413806-4f9c-4890-9cc9-6dd2eb8fdc5a", "97075950-a8c8-49a3-abe7-c4bcdcf42729"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def call(method: str, path: str, body: Json = None) -> JsonObject:
    return {"method": method, "path": path, "body": body or {}, "status": 200, "at_ms": 1}


def binding(name: str) -> JsonObject:
    return call("POST", f"{PODS}/{name}/binding", {"kind": "Binding", "metadata": {"name": name}})


def event(name: str, reason: str, uid: str = UID, note: str = "") -> JsonObject:
    regarding: Json = {"kind": "Pod", "namespace": "default", "name": name, "uid": uid, "resourceVersion": uid[:2]}
    return call("POST", EVENTS, {"kind": "Event", "reason": reason, "regarding": regarding, "note": note})


def patch(name: str, condition: str) -> JsonObject:
    return call("PATCH", f"{PODS}/{name}/status", {"status": {"conditions": [{"type": condition}]}})


def deletion(name: str) -> JsonObject:
    return call("DELETE", f"{PODS}/{name}")


LOW0, LOW1 = (
    [patch("low0", "DisruptionTarget"), deletion("low0")],
    [patch("low1", "DisruptionTarget"), deletion("low1")],
)


@pytest.mark.parametrize(
    ("recorded", "ours", "want"),
    [
        pytest.param([binding("a"), binding("b")], [binding("b"), binding("a")], [], id="two pods are concurrent"),
        pytest.param(
            [binding("a"), event("a", "Scheduled")], [event("a", "Scheduled"), binding("a")], ["requests"],
            id="a binding precedes its event",
        ),
        pytest.param(
            [event("a", "FailedScheduling"), patch("a", "PodScheduled")],
            [patch("a", "PodScheduled"), event("a", "FailedScheduling")], [],
            id="an event and the patch of its pod are concurrent",
        ),
        pytest.param(
            [patch("a", "DisruptionTarget"), deletion("a")], [deletion("a"), patch("a", "DisruptionTarget")], ["requests"],
            id="a victim gets its condition before it is deleted",
        ),
        pytest.param(
            [deletion("a"), event("a", "Preempted")], [event("a", "Preempted"), deletion("a")], ["requests"],
            id="the event of an eviction is last",
        ),
        pytest.param([event("a", "X", UID)], [event("a", "X", OTHER)], [], id="uids and versions vary"),
        pytest.param(
            [event("a", "X", UID, f"by pod {UID}")], [event("a", "X", OTHER, f"by pod {OTHER}")], [], id="also in notes"
        ),
        pytest.param(
            [event("a", "X", UID, f"by pod {UID}"), event("b", "X", OTHER)],
            [event("a", "X", UID, f"by pod {OTHER}"), event("b", "X", OTHER)], ["requests"],
            id="the owner of a uid counts",
        ),
        pytest.param([*LOW0], [*LOW1], [], id="one victim is as good as an equal one"),
        pytest.param([*LOW0], [*LOW0, *LOW1], ["requests"], id="two victims do not match one"),
    ],
)  # fmt: skip
def test_only_concurrent_requests_may_be_reordered(recorded: list[Json], ours: list[Json], want: list[str]) -> None:
    steps: list[Json] = [
        {"op": "create", "object": {"kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "n1"}}}
        for name in ("low0", "low1")
    ]
    record: JsonObject = {"steps": steps, "observed": {"calls": recorded, "events": [], "pods": _left(recorded)}}
    answer: JsonObject = {"observed": {"calls": ours, "events": [], "pods": _left(ours)}}
    parts = [part for part, theirs, mine in comparable_run_parts(record, answer) if differ(part, theirs, mine)]
    assert [part for part in parts if part == "requests"] == want


def _left(calls: list[Json]) -> Json:
    """Return the pods that no request has deleted, without conditions."""
    paths = [item["path"] for item in calls if isinstance(item, dict) and item["method"] == "DELETE"]
    return {name: {"conditions": []} for name in ("low0", "low1") if f"{PODS}/{name}" not in paths}
