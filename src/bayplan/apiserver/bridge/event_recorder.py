"""Records events of controllers and the kubelet, and counts, combines and limits them by client-go's rules.

An event that repeats an earlier one increments its count. Events of an object that differ only in their message become
one event with the last message, from the tenth different message on. Each source can record 25 events about an object,
then one every five minutes. Recording an event only queues it: `EventRecorder.post_one` writes it in a later slice of
the bridge's work.

Source: k8s.io/client-go/tools/record/events_cache.go v0.36.3.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time
from bayplan.base.plain_data import Document
from bayplan.controllers.writer import NORMAL, WriteRejected
from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

T = TypeVar("T")

_MAX_REMEMBERED = 4096
_MAX_WAITING = 10_000
_BURST = 25
_REFILL_NS = 300 * SECOND_NS
_MAX_SIMILAR = 10
_SIMILAR_NS = 600 * SECOND_NS
_COMBINED = "(combined from similar events): "


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """A pending event.

    Attributes:
        api_version, kind, namespace, name, uid, resource_version: the object that the event is about.
        field_path: the path of a container within the object, or empty.
        type, reason, message: the fields of the event.
        component: the reporting component.
        host: the node on which it happened, or empty.
        time_ns: the time in nanoseconds since 1970.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    field_path: str
    type: str
    reason: str
    message: str
    component: str
    host: str
    time_ns: int

    @property
    def source(self) -> tuple[str, ...]:
        """The key of the rate limit: the reporting component, the host and the object."""
        return (self.component, self.host, self.kind, self.namespace, self.name, self.uid)


@dataclass(slots=True)
class _Similar:
    """The different messages of similar events, and the time of the last event in nanoseconds since 1970."""

    texts: dict[str, None]
    since_ns: int


class EventRecorder:
    """Records events, and writes them to the API later.

    Args:
        writer: writes untyped objects through the API.
        clock: returns the time in nanoseconds since 1970.
    """

    def __init__(self, writer: ObjectWriter, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._clock = clock
        self._waiting: deque[_Occurrence] = deque()
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._budgets: OrderedDict[tuple[str, ...], tuple[float, int]] = OrderedDict()
        self._posted: OrderedDict[tuple[str, ...], tuple[str, int, str]] = OrderedDict()
        self._last_ns = 0

    def record(
        self,
        item: KubernetesObject,
        reason: str,
        message: str,
        component: str,
        *,
        type_: str = NORMAL,
        host: str = "",
        field_path: str = "",
    ) -> None:
        """Record an event about an object, unless the limit of the source is exceeded.

        Args:
            item: the object.
            reason, message: upstream's reason and message.
            component: the reporting component.
            type_: ``Normal`` or ``Warning``.
            host: the node on which it happened, or empty.
            field_path: the path of a container within the object, or empty.
        """
        if len(self._waiting) >= _MAX_WAITING:
            return
        kind, metadata, now_ns = kind_of(type(item)), item.metadata, self._clock()
        # Check the limit first, because it rejects almost all events of a pod with thousands of containers.
        source = (component, host, kind.kind, metadata.namespace, metadata.name, metadata.uid)
        if not self._is_within_budget(source, now_ns):
            return
        occurrence = _Occurrence(
            api_version=kind.api_version,
            kind=kind.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            field_path=field_path,
            type=type_,
            reason=reason,
            message=message,
            component=component,
            host=host,
            time_ns=now_ns,
        )
        self._waiting.append(occurrence)

    def of_container(self, pod: Pod, container: str, reason: str, message: str) -> None:
        """Record an event of the kubelet about a container of a pod."""
        path = f"spec.containers{{{container}}}"
        self.record(pod, reason, message, "kubelet", host=pod.spec.node_name, field_path=path)

    def _is_within_budget(self, source: tuple[str, ...], now_ns: int) -> bool:
        tokens, since_ns = self._budgets.get(source, (float(_BURST), now_ns))
        tokens = min(float(_BURST), tokens + max(now_ns - since_ns, 0) / _REFILL_NS)
        allowed = tokens >= 1
        _put(self._budgets, source, (tokens - 1 if allowed else tokens, now_ns))
        return allowed

    @property
    def has_work(self) -> bool:
        """Whether events are waiting to be written."""
        return bool(self._waiting)

    def post_one(self) -> bool:
        """Write the first pending event, and return whether there was one."""
        if not self._waiting:
            return False
        event = self._waiting.popleft()
        message, key = self._combined(event)
        known = self._posted.get(key)
        namespace = event.namespace or "default"
        now = format_time(event.time_ns)
        try:
            if known is not None:
                name, count, first = known
                changes = {"count": count + 1, "lastTimestamp": now, "message": message}
                self._writer.change("events", (namespace, name), changes)
                _put(self._posted, key, (name, count + 1, first))
            else:
                name = self._name(event)
                document = _document(event, namespace, name, message, now)
                likeness = (
                    bool(event.namespace),
                    bool(event.resource_version),
                    bool(event.field_path),
                    bool(event.host),
                )
                self._writer.create_alike("events", namespace, document, likeness)
                _put(self._posted, key, (name, 1, now))
        except WriteRejected:
            # The stored event or its namespace is being deleted, so drop the event.
            self._posted.pop(key, None)
        return True

    def _combined(self, event: _Occurrence) -> tuple[str, tuple[str, ...]]:
        """Return the message of an event, and the key under which equal or combined events are counted."""
        group = (*event.source, event.type, event.reason, event.field_path)
        similar = self._similar.get(group)
        if similar is None or event.time_ns - similar.since_ns > _SIMILAR_NS:
            similar = _Similar({}, event.time_ns)
        similar.since_ns = event.time_ns
        if len(similar.texts) < _MAX_SIMILAR:
            similar.texts[event.message] = None
        _put(self._similar, group, similar)
        if len(similar.texts) < _MAX_SIMILAR:
            return event.message, (*group, event.message)
        return f"{_COMBINED}{event.message}", group

    def _name(self, event: _Occurrence) -> str:
        # Events of one object at the same time need different names.
        self._last_ns = max(event.time_ns, self._last_ns + 1)
        return f"{event.name}.{self._last_ns:x}"


def _put(memory: OrderedDict[tuple[str, ...], T], key: tuple[str, ...], value: T) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _MAX_REMEMBERED:
        memory.popitem(last=False)


def _document(event: _Occurrence, namespace: str, name: str, message: str, now: str) -> Document:
    involved: Document = {"apiVersion": event.api_version, "kind": event.kind, "name": event.name, "uid": event.uid}
    for field, text in (
        ("namespace", event.namespace),
        ("resourceVersion", event.resource_version),
        ("fieldPath", event.field_path),
    ):
        if text:
            involved[field] = text
    source: Document = {"component": event.component}
    if event.host:
        source["host"] = event.host
    return {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": involved,
        "reason": event.reason,
        "message": message,
        "source": source,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": event.type,
        "eventTime": None,
        "reportingComponent": event.component,
        "reportingInstance": event.host,
    }
