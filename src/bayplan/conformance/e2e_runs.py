"""Comparison of two runs of the same steps: requests, events, conditions and pods, with variable values masked in both.

Versions, times and generated names are masked; uids become the names of their objects. Requests for different objects
are concurrent, so they are compared in lanes: the requests for one object in order, and in addition the two orders
across objects that are guaranteed: a binding before its event, and for an eviction the condition, the deletion, the
event. Pods that differ only in their names are interchangeable as victims: upstream's choice among them depends on its
clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

import msgspec

from bayplan.conformance.cases import Json, JsonObject

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_EVENT_NAME = re.compile(r"\.[0-9a-f]{14,16}$")
_POD_NAME = re.compile(r"[\w-]+")
_VERSION, _ANY_TIME, _ANY_UID = "<version>", "<time>", "<uid>"


def comparable_run_parts(record: JsonObject, answer: JsonObject) -> Iterator[tuple[str, Json, Json]]:
    """Yield the parts of a run: name, observations on the real cluster, observations in Bayplan.

    Args:
        record: the recorded run.
        answer: Bayplan's answer; ``observed`` has its observations.
    """
    steps = cast("list[JsonObject]", record["steps"])
    want = _Run(steps, cast("JsonObject", record["observed"]))
    got = _Run(steps, cast("JsonObject", answer.get("observed") or {"calls": [], "events": [], "pods": {}}))
    yield "events", want.events(), got.events()
    yield "conditions", want.conditions(), got.conditions()
    yield "pods", want.pods(), got.pods()
    yield "requests", want.requests(), got.requests()


class _Run:
    """The observations of one run, masked for comparison."""

    def __init__(self, steps: list[JsonObject], observed: JsonObject) -> None:
        self._observed = observed
        self._names = dict(objects_with_uids(observed))
        self._same = _interchangeable(steps, cast("JsonObject", observed["pods"]))

    def events(self) -> Json:
        """Return the events, sorted."""
        found = [self._masked(event) for event in cast("list[Json]", self._observed["events"])]
        return cast("Json", sorted(found, key=_sort_key))

    def pods(self) -> Json:
        """Return the pods without their conditions."""
        pods = cast("JsonObject", self._masked(self._observed["pods"]))
        return {name: _without(cast("JsonObject", pod), "conditions") for name, pod in pods.items()}

    def conditions(self) -> Json:
        """Return the conditions of all pods, in order."""
        pods = cast("JsonObject", self._masked(self._observed["pods"]))
        return {name: cast("JsonObject", pod)["conditions"] for name, pod in pods.items()}

    def requests(self) -> Json:
        """Return the requests in their order, by lane."""
        lanes: dict[str, list[Json]] = {}
        for call in cast("list[JsonObject]", self._observed["calls"]):
            masked = cast("JsonObject", self._masked(call))
            body = cast("JsonObject", masked.get("body") or {})
            path, method = str(masked["path"]), str(masked["method"])
            summary: JsonObject = {"method": method, "path": path, "body": body, "status": masked["status"]}
            if body.get("kind") == "Event":
                regarding = cast("JsonObject", body["regarding"])
                lanes.setdefault(f"events of {regarding['namespace']}/{regarding['name']}", []).append(summary)
            else:
                lanes.setdefault(path, []).append(summary)
            for lane, step in _ordered(method, path, body):
                lanes.setdefault(lane, []).append(step)
        return cast("Json", lanes)

    def _masked(self, value: Json, name: str = "") -> Json:
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        if isinstance(value, dict):
            return {self._renamed(key): self._masked(item, key) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        if name == "resourceVersion":
            return _VERSION
        if name == "path":
            value = value.partition("?")[0]
        if name == "name":
            value = _EVENT_NAME.sub(".<generated>", value)
        value = _UID.sub(lambda match: self._names.get(match[0], _ANY_UID), value)
        return self._renamed(_TIME.sub(_ANY_TIME, value))

    def _renamed(self, text: str) -> str:
        return _POD_NAME.sub(lambda match: self._same.get(match[0], match[0]), text) if self._same else text


def _ordered(method: str, path: str, body: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield (lane, role of the request in the lane) for each guaranteed order across objects that a request belongs to."""
    if path.endswith("/binding"):
        yield f"binding of {path.split('/')[-2]}", "binding"
    elif body.get("kind") == "Event":
        name = str(cast("JsonObject", body["regarding"])["name"])
        if body["reason"] == "Scheduled":
            yield f"binding of {name}", "event"
        elif body["reason"] == "Preempted":
            yield f"eviction of {name}", "event"
    elif method == "DELETE":
        yield f"eviction of {path.split('/')[-1]}", "deletion"
    elif method == "PATCH" and "DisruptionTarget" in msgspec.json.encode(body).decode():
        yield f"eviction of {path.split('/')[-2]}", "condition"


def _interchangeable(steps: list[JsonObject], pods: JsonObject) -> dict[str, str]:
    """Return a common name for interchangeable pods, by pod name; deleted pods are numbered first."""
    alike: dict[str, list[str]] = {}
    for step in steps:
        document = cast("JsonObject", step.get("object") or {})
        if document.get("kind") != "Pod" or "nodeName" not in cast("JsonObject", document["spec"]):
            continue
        metadata = cast("JsonObject", document["metadata"])
        like = {**document, "metadata": _without(metadata, "name")}
        alike.setdefault(msgspec.json.encode(like, order="deterministic").decode(), []).append(str(metadata["name"]))
    return {
        name: f"{'='.join(names)} number {number}"
        for names in alike.values()
        if len(names) > 1
        for number, name in enumerate(sorted(names, key=lambda each: (each in pods, each)))
    }


def objects_with_uids(value: Json, kind: str = "") -> Iterator[tuple[str, str]]:
    """Yield each uid in a document with its object: ``Pod default/web``."""
    if isinstance(value, list):
        for item in value:
            yield from objects_with_uids(item)
    elif isinstance(value, dict):
        kind = str(value.get("kind") or kind)
        uid, name, namespace = value.get("uid"), value.get("name"), value.get("namespace")
        if isinstance(uid, str) and kind:
            yield uid, f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        for inner, item in value.items():
            yield from objects_with_uids(item, kind if inner == "metadata" else "")


def _without(value: JsonObject, name: str) -> JsonObject:
    return {key: item for key, item in value.items() if key != name}


def _sort_key(value: Json) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
