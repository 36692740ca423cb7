"""Events as kube-scheduler records them: an equal event makes the first a series, and further events are counted.

A state machine without clock and sockets. `EventRecording.exchange` writes an event, with retries.

Source: client-go's tools/events, and KEP-383
(https://github.com/kubernetes/enhancements/tree/master/keps/sig-instrumentation/383-new-event-api-ga-graduation).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_micro_time
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import NO_ANSWER, STRATEGIC_MERGE_PATCH, ApiRequest, ApiResponse
from bayplan.objects.names import check_dns1123_subdomain
from bayplan.objects.pod import Pod

FINISH_NS = 6 * 60 * SECOND_NS
"""Time without new occurrences after which a series ends and its final count is written.

Also the interval between checks.
"""

REFRESH_NS = 30 * 60 * SECOND_NS
"""Interval between writes of the counts of active series."""

MAX_TRIES = 12
RETRY_SECONDS = 10.0
"""Interval between retries if there is no response. Upstream adds up to a quarter."""

_encode = msgspec.json.encode


class PodEvent(NamedTuple):
    """An event about a pod.

    Attributes:
        pod: the pod, in the version known at that time.
        type: ``Normal`` or ``Warning``.
        reason, action, note: the fields of the event.
        controller: the reporting controller, which is the scheduler's name.
    """

    pod: Pod
    type: str
    reason: str
    action: str
    note: str
    controller: str


class _Key(NamedTuple):
    """The fields that equal events share: all except note and time, including the version of the pod."""

    type: str
    reason: str
    action: str
    controller: str
    namespace: str
    name: str
    uid: str
    resource_version: str


class _Known(msgspec.Struct, gc=False):
    """A recorded event that can still become a series.

    Attributes:
        document: the event as created.
        path: the path of the namespace's events.
        event_ns: the time of the first occurrence.
        count: the number of occurrences.
        last_ns: the time of the last repetition, 0 if there is none.
    """

    document: dict[str, object]
    path: str
    event_ns: int
    count: int = 1
    last_ns: int = 0


class EventRecording(msgspec.Struct, frozen=True, gc=False):
    """An event to write.

    Attributes:
        path: the path of the namespace's events.
        name: the name of the event.
        document: the complete event.
        is_series: whether the event already exists, so that only its series is patched.
    """

    path: str
    name: str
    document: dict[str, object]
    is_series: bool

    def exchange(self) -> RequestSteps[bool]:
        """Write the event, and return whether that succeeded.

        The generator yields requests, whose responses the driver sends in, and numbers of seconds to wait. If the event
        of a series has been deleted, it is created again. If the server rejects the event, it is dropped. Without a
        response, a request is sent up to `MAX_TRIES` times.
        """
        for attempt in range(MAX_TRIES):
            if attempt:
                yield RETRY_SECONDS
            response = ApiResponse(404)
            if self.is_series:
                patch = {"series": self.document["series"]}
                response = yield ApiRequest("PATCH", f"{self.path}/{self.name}", _encode(patch), STRATEGIC_MERGE_PATCH)
            if not self.is_series or response.status == 404:
                response = yield ApiRequest("POST", self.path, _encode(self.document))
            if response.ok:
                return True
            exists_by_now = self.is_series and response.status == 409
            if response.status != NO_ANSWER and not exists_by_now:
                return False
        return False


class EventRecorder:
    """Creates events of ``events.k8s.io/v1``, and counts equal events.

    Args:
        host_name: the host name of this machine, part of ``reportingInstance``.
        now: returns the time in nanoseconds since 1970.
    """

    def __init__(self, host_name: str, now: Callable[[], int]) -> None:
        self._host_name = host_name
        self._now = now
        self._known: dict[_Key, _Known] = {}
        self._last_name_ns = 0
        started_ns = now()
        self._finish_due = started_ns + FINISH_NS
        self._refresh_due = started_ns + REFRESH_NS

    def record(self, event: PodEvent) -> EventRecording | None:
        """Record an event, and return what to write, or None if the event is only counted."""
        metadata = event.pod.metadata
        now_ns = self._now()
        path = f"/apis/events.k8s.io/v1/namespaces/{metadata.namespace or 'default'}/events"
        if event.reason == "Scheduled":
            # A pod is bound only once, so do not remember this event, which would fill the table.
            return self._created(event, path, now_ns)
        key = _Key(
            event.type,
            event.reason,
            event.action,
            event.controller,
            metadata.namespace,
            metadata.name,
            metadata.uid,
            metadata.resource_version,
        )
        known = self._known.get(key)
        if known is None:
            recording = self._created(event, path, now_ns)
            self._known[key] = _Known(recording.document, path, now_ns)
            return recording
        known.count += 1
        known.last_ns = now_ns
        return _series(known) if known.count == 2 else None

    def next_wakeup_ns(self) -> int:
        """Return the time in nanoseconds since 1970 at which `tick` next has work."""
        return min(self._finish_due, self._refresh_due)

    def tick(self) -> list[EventRecording]:
        """Return the series whose counts are due to be written, and forget ended series."""
        now_ns = self._now()
        due: list[EventRecording] = []
        if now_ns >= self._refresh_due:
            self._refresh_due = now_ns + REFRESH_NS
            due += [_series(known) for known in self._known.values() if known.count > 1]
        if now_ns >= self._finish_due:
            self._finish_due = now_ns + FINISH_NS
            over = now_ns - FINISH_NS
            for key, known in list(self._known.items()):
                if max(known.event_ns, known.last_ns) < over:
                    del self._known[key]
                    if known.count > 1:
                        due.append(_series(known))
        return due

    def _created(self, event: PodEvent, path: str, now_ns: int) -> EventRecording:
        metadata = event.pod.metadata
        # Names contain the time, so with a coarse clock two events of one object could get the same name.
        self._last_name_ns = max(now_ns, self._last_name_ns + 1)
        name = f"{metadata.name}.{self._last_name_ns:x}"
        if check_dns1123_subdomain(name):
            name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{metadata.uid} {name}"))
        regarding = {
            "kind": "Pod",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "apiVersion": "v1",
            "resourceVersion": metadata.resource_version,
        }
        document: dict[str, object] = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": name, "namespace": metadata.namespace or "default"},
            "eventTime": format_micro_time(now_ns),
            "reportingController": event.controller,
            "reportingInstance": f"{event.controller}-{self._host_name}",
            "action": event.action,
            "reason": event.reason,
            "regarding": {name: value for name, value in regarding.items() if value},
            "note": event.note,
            "type": event.type,
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }
        return EventRecording(path, name, document, is_series=False)


def _series(known: _Known) -> EventRecording:
    series = {"count": known.count, "lastObservedTime": format_micro_time(known.last_ns)}
    metadata = known.document["metadata"]
    name = str(metadata["name"]) if isinstance(metadata, dict) else ""
    return EventRecording(known.path, name, {**known.document, "series": series}, is_series=True)
