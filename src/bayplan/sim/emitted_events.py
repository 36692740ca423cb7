"""Collect the Kubernetes events that a run emits; equal ones become one with a count, as in an event series."""

from __future__ import annotations

from bayplan.engine.actions import Emit
from bayplan.engine.queued_pod import key_of
from bayplan.sim.result import SimulatedEvent


class EmittedEvents:
    """Events by pod and text, in the order in which they came first."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str, str], SimulatedEvent] = {}

    def take(self, emitted: Emit, now_ns: int) -> None:
        """Take in an event."""
        pod = key_of(emitted.pod)
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
        """Return all events."""
        return [*self._events.values()]
