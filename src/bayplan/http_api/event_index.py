"""Index Kubernetes events by the object that they refer to, so that a page about one object need not search all events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.base.go_text.times import parse_instant
from bayplan.sim.result import SimulatedEvent

EVENTS = "events"
MAX_EVENTS = 200
"""Maximum number of events returned for one object."""

InvolvedObject = tuple[str, str, str]
"""Kind, namespace of the event, and name of the object that an event refers to."""


class EventSummary(NamedTuple):
    """An event with its times, in nanoseconds since 1970."""

    type: str
    reason: str
    action: str
    note: str
    first_ns: int
    last_ns: int
    times: int


class EventIndex:
    """The names of events by the object that they refer to. Use on the event loop.

    Args:
        backend: the backend of the API.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        # The names of an object's events, as keys in the order of their last writes.
        self._names: dict[InvolvedObject, dict[tuple[str, str], None]] = {}
        backend.store.listen(EVENTS, self._take, self._reload)
        self._reload()

    def _reload(self) -> None:
        self._names.clear()
        for item in sorted(self._backend.store.between(EVENTS), key=lambda item: item.revision):
            self._add(item)

    def _take(self, write: Write) -> None:
        if write.old is not None:
            self._remove(write.old)
        if write.type != DELETED:
            self._add(write.new)

    def _add(self, item: Item) -> None:
        self._names.setdefault(_about(item), {})[item.key] = None

    def _remove(self, item: Item) -> None:
        names = self._names.get(_about(item))
        if names is not None:
            names.pop(item.key, None)
            if not names:
                del self._names[_about(item)]

    def of(self, kind: str, namespace: str, name: str) -> list[EventSummary]:
        """Return the most recently written events about an object, at most `MAX_EVENTS`, ordered by their last times.

        Args:
            kind, name: the kind and name of the object.
            namespace: the namespace of the events: that of the object, or ``default`` for cluster-scoped objects.
        """
        names = list(self._names.get((kind, namespace, name), ()))[-MAX_EVENTS:]
        items = (self._backend.store.get(EVENTS, key) for key in names)
        found = [_summary_of(decode_item(item)) for item in items if item is not None]
        return sorted(found, key=lambda event: event.last_ns)

    def of_pod(self, key: str) -> list[SimulatedEvent]:
        """Return the events about a pod ``namespace/name`` in the form that explanations use."""
        namespace, _, name = key.partition("/")
        return [
            SimulatedEvent(key, each.type, each.reason, each.action, each.note, each.first_ns, each.last_ns, each.times)
            for each in self.of("Pod", namespace, name)
        ]


def _about(item: Item) -> InvolvedObject:
    fields = item.fields
    return fields.get("involvedObject.kind", ""), item.namespace, fields.get("involvedObject.name", "")


def _summary_of(event: Mapping[str, object]) -> EventSummary:
    series = event.get("series")
    series = series if isinstance(series, dict) else {}
    metadata = event.get("metadata")
    created = metadata.get("creationTimestamp") if isinstance(metadata, dict) else None
    first = _instant(event.get("eventTime")) or _instant(event.get("firstTimestamp")) or _instant(created)
    last = _instant(series.get("lastObservedTime")) or _instant(event.get("lastTimestamp")) or first
    count = series.get("count") or event.get("count") or 1
    return EventSummary(
        str(event.get("type") or "Normal"),
        str(event.get("reason") or ""),
        str(event.get("action") or ""),
        str(event.get("message") or event.get("note") or ""),
        first,
        last,
        count if isinstance(count, int) else 1,
    )


def _instant(value: object) -> int:
    return (parse_instant(value) if isinstance(value, str) else None) or 0
