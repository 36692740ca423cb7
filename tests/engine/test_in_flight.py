"""Pods in flight and the events since their pops."""

from __future__ import annotations

import pytest

from bayplan.engine.in_flight import InFlight
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import NODE_ADD, ObjectChange
from bayplan.testing import make_node
from tests.engine.queue_pods import pod

# A letter pops a pod, a digit is an event, a letter with a minus ends a pod. Expected: the remaining entries, and each
# pod's events.
TRACES: list[tuple[str, str, str, dict[str, str]]] = [
    ("nothing happened", "a", "a", {"a": ""}),
    ("events after the pop", "a 1 2", "a12", {"a": "12"}),
    ("a pod sees only what came after its own pop", "a 1 b 2", "a1b2", {"a": "12", "b": "2"}),
    ("the last pod takes the events with it", "a 1 2 -a", "", {}),
    ("events that a younger pod saw stay", "a 1 b 2 -a", "b2", {"b": "2"}),
    ("events that an older pod saw stay", "a 1 b 2 -b", "a12", {"a": "12"}),
    ("of three the middle one ends", "a 1 b 2 c 3 -b", "a12c3", {"a": "123", "c": "3"}),
    ("the middle one, then the first one", "a 1 b 2 c 3 -b -a", "c3", {"c": "3"}),
    ("two pods between events", "a b 1 -a", "b1", {"b": "1"}),
    ("two pods between events, both end", "a b 1 c 2 -a -b", "c2", {"c": "2"}),
    ("a pod that ends twice", "a 1 b -a -a", "b", {"b": ""}),
    ("a pod that comes back", "a 1 -a a 2", "a2", {"a": "2"}),
]


@pytest.mark.parametrize(("trace", "left", "seen"), [row[1:] for row in TRACES], ids=[row[0] for row in TRACES])
def test_events_are_retained_while_a_pod_in_flight_needs_them(trace: str, left: str, seen: dict[str, str]) -> None:
    in_flight = InFlight()
    for step in trace.split():
        if step.isdigit():
            in_flight.append(ObjectChange(NODE_ADD, None, make_node(step).obj()))
        elif step.startswith("-"):
            in_flight.done(step[1:])
        else:
            in_flight.start(QueuedPod(pod(step), step, step, 0, 0))
        in_flight.check_invariants()
    assert "".join(each.key if isinstance(each, QueuedPod) else name_of(each) for each in in_flight) == left
    assert {uid: events(in_flight, uid) for uid in "abc" if uid in in_flight} == seen


def events(in_flight: InFlight, uid: str) -> str:
    found = in_flight.events_since_pop(uid)
    assert found is not None
    return "".join(name_of(each) for each in found)


def name_of(change: ObjectChange) -> str:
    assert change.new is not None
    return change.new.metadata.name


def test_a_pod_can_be_in_flight_only_once() -> None:
    in_flight = InFlight()
    assert in_flight.start(QueuedPod(pod("a"), "a", "uid", 0, 0))
    assert not in_flight.start(QueuedPod(pod("a"), "a", "uid", 1, 0))
    assert len(in_flight) == 1


def test_a_pod_not_in_flight_has_no_events() -> None:
    assert InFlight().events_since_pop("a") is None
