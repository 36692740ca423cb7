"""Collects the Kubernetes events of a run; equal events become one with a count, as in an event series."""

from __future__ import annotations

from bayplan.engine.actions import Emit
from bayplan.engine.queued_pod import key_of
from bayplan.sim.result import SimulatedEvent


class EmittedEvents:
    """Events by pod and text, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str, str], SimulatedEvent] = {}
        # Every pod that gets a node has exactly one of these, so they are stored compactly, outside the dictionary.
        self._scheduled: list[tuple[int, str, str]] = []

    def record(self, emitted: Emit, now_ns: int) -> None:
        """Record an event, or count it if it is known."""
        pod = key_of(emitted.pod)
        if emitted.reason == "Scheduled":
            self._scheduled.append((now_ns, pod, emitted.note))
            return
        key = (pod, emitted.reason, emitted.note)
        known = self._events.get(key)
        if known is not None:
            known.last_ns = now_ns
            known.count += 1
            return
        self._events[key] = SimulatedEvent(
            pod, emitted.type, emitted.reason, emitted.action, emitted.note, now_ns, now_ns
        )

    def all(self) -> list[SimulatedEvent]:
        """Return all events by the time of their first occurrence.

        At the same instant, those about placements come last.
        """
        scheduled = [
            SimulatedEvent(pod, "Normal", "Scheduled", "Binding", note, now_ns, now_ns)
            for now_ns, pod, note in self._scheduled
        ]
        return sorted([*self._events.values(), *scheduled], key=lambda event: event.first_ns)
