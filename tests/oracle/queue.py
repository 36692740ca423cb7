"""A naive scheduling queue: plain lists, each rule written out wherever it applies, and no caches.

It shares the data types (pods, events, options) and the derivation of events from pods with the real queue, but none
of its parts. PreEnqueue plugins and hints are plain functions. Equal pods are ordered by the numbers of their records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bayplan.engine.queue_options import QueueOptions
from bayplan.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterEvent, HintTable, pod_update_events
from bayplan.objects.pod import Pod

SECOND = 1_000_000_000
SKIP, LATER, NOW = 0, 1, 2

Gates = Sequence[tuple[str, Callable[[Pod], bool]]]
"""PreEnqueue plugins; True lets the pod pass."""


@dataclass(eq=False)
class Record:
    """A pod in the queue or in flight, with the state of its attempts."""

    pod: Pod
    number: int
    timestamp: int
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    initial_attempt: int | None = None
    plugins: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""
    flushed: bool = False


def name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def covers(registered: ClusterEvent, event: ClusterEvent) -> bool:
    if (registered.resource, registered.actions) == ("*", 8191):
        return True
    resources = {"*", event.resource} | ({"Pod"} if event.resource in ("AssignedPod", "UnschedulablePod") else set())
    return (
        registered.resource in resources
        and registered.actions & event.actions != 0 < event.actions <= registered.actions
    )


class NaiveQueue:
    """A queue with the public operations of `bayplan.engine.queue.SchedulingQueue`."""

    def __init__(
        self, hints: HintTable, gates: dict[str, Gates], lister: Callable[[str], Pod | None], options: QueueOptions
    ) -> None:
        self.hints, self.gates, self.lister, self.options = hints, gates, lister, options
        self.active: list[Record] = []
        self.backoff: list[Record] = []
        self.error_backoff: list[Record] = []
        self.unschedulable: list[Record] = []
        self.in_flight: list[Record | tuple[ClusterEvent, object, object]] = []
        self.uids_in_flight: dict[str, Record] = {}
        self.nominated: list[tuple[str, str, str]] = []  # node, uid, name; oldest first
        self.cycle = 0
        self.number = 0

    # Looking up.

    def find(self, place: list[Record], pod: Pod) -> Record | None:
        return next((record for record in place if name(record.pod) == name(pod)), None)

    def drop(self, place: list[Record], pod: Pod) -> Record | None:
        record = self.find(place, pod)
        if record is not None:
            place.remove(record)
        return record

    def expiry(self, record: Record) -> int | None:
        count = record.error_count if record.error_count > 0 else record.unschedulable_count
        if count == 0 or self.options.max_backoff_ns == 0:
            return None
        duration = self.options.initial_backoff_ns
        for _ in range(count - 1):
            duration *= 2
        end = record.timestamp + min(duration, self.options.max_backoff_ns)
        return end // SECOND * SECOND if self.options.pop_from_backoff else end

    def backs_off(self, record: Record, now: int) -> bool:
        end = self.expiry(record)
        if end is None:
            return False
        return end >= (now // SECOND * SECOND if self.options.pop_from_backoff else now)

    # Orders.

    def active_order(self) -> list[Record]:
        return sorted(self.active, key=lambda r: (-(r.pod.spec.priority or 0), r.timestamp, r.number))

    def backoff_order(self) -> list[Record]:
        if not self.options.pop_from_backoff:
            return sorted(self.backoff, key=lambda r: (self.expiry(r) or 0, r.number))
        return sorted(
            self.backoff, key=lambda r: (self.expiry(r) or 0, -(r.pod.spec.priority or 0), r.timestamp, r.number)
        )

    def error_backoff_order(self) -> list[Record]:
        return sorted(self.error_backoff, key=lambda r: (self.expiry(r) or 0, r.number))

    # Moving between places (sections "Gates" to "requeue").

    def run_gates(self, record: Record) -> None:
        gates = list(self.gates.get(record.pod.spec.scheduler_name, ()))
        gates.sort(key=lambda gate: gate[0] != record.gate if record.gate else False)
        for plugin, passes in gates:
            if not passes(record.pod):
                record.plugins = record.plugins | {plugin}
                record.gate = plugin
                return
        record.gate = ""

    def to_unschedulable(self, record: Record) -> None:
        if self.find(self.unschedulable, record.pod) is not record:
            self.drop(self.unschedulable, record.pod)
            self.unschedulable.append(record)

    def to_active(self, record: Record, now: int, *, nominate: bool = False, from_backoff: bool = False) -> None:
        if not (self.options.pop_from_backoff and from_backoff):
            self.run_gates(record)
        if record.gate:
            places = (self.active, self.backoff, self.error_backoff)
            if not any(self.find(place, record.pod) for place in places):
                self.to_unschedulable(record)
            return
        if record.initial_attempt is None:
            record.initial_attempt = now
        for place in (self.unschedulable, self.backoff, self.error_backoff, self.active):
            self.drop(place, record.pod)
        self.active.append(record)
        if nominate:
            self.nominate(record.pod)

    def to_backoff(self, record: Record) -> None:
        if self.options.pop_from_backoff:
            self.run_gates(record)
            if record.gate:
                self.to_unschedulable(record)
                return
        for place in (self.unschedulable, self.backoff, self.error_backoff):
            self.drop(place, record.pod)
        (self.backoff if record.plugins or record.pending else self.error_backoff).append(record)

    def requeue(self, record: Record, strategy: int, now: int) -> None:
        if strategy == SKIP:
            self.to_unschedulable(record)
        elif strategy == LATER and self.backs_off(record, now):
            self.to_backoff(record)
        else:
            self.to_active(record, now)

    def worth(self, record: Record, event: ClusterEvent, old: object, new: object) -> int:
        if not record.plugins and not record.pending:
            return LATER
        if (event.resource, event.actions) == ("*", 8191):
            if new is None or (isinstance(new, Pod) and new.metadata.uid == record.pod.metadata.uid):
                return LATER
            return SKIP
        profile = record.pod.spec.scheduler_name
        if profile not in self.hints:
            return LATER
        best = SKIP
        for registered, plugin, hint in self.hints[profile]:
            asked = plugin in record.plugins | record.pending and covers(registered, event)
            if asked and (hint is None or hint(record.pod, old, new)):
                best = max(best, NOW if plugin in record.pending else LATER)
        return best

    # Operations.

    def add(self, pod: Pod, now: int) -> None:
        self.number += 1
        self.to_active(Record(pod, self.number, now), now, nominate=True)

    def update(self, old: Pod, new: Pod, now: int) -> None:
        events = pod_update_events(old, new)
        if new.metadata.uid in self.uids_in_flight:
            self.in_flight += [(event, old, new) for event in events]
            return
        for place in (self.active, self.backoff, self.error_backoff):
            record = self.find(place, old)
            if record is not None:
                record.pod = new
                self.update_nominated(old, new)
                return
        record = self.find(self.unschedulable, new)
        if record is None:
            self.number += 1
            self.to_active(Record(new, self.number, now), now, nominate=True)
            return
        record.pod = new
        self.update_nominated(old, new)
        for event in events:
            self.requeue(record, self.worth(record, event, old, new), now)
            if record in self.active:
                return
            if self.options.pop_from_backoff and record in self.backoff + self.error_backoff:
                return

    def delete(self, pod: Pod) -> None:
        self.unnominate(pod)
        for place in (self.active, self.backoff, self.error_backoff, self.unschedulable):
            if self.drop(place, pod) is not None:
                return

    def start(self, record: Record) -> bool:
        record.attempts += 1
        if record.pod.metadata.uid in self.uids_in_flight:
            return False
        self.uids_in_flight[record.pod.metadata.uid] = record
        self.in_flight.append(record)
        self.cycle += 1
        return True

    def pop(self) -> Record | None:
        while self.active or (self.backoff and self.options.pop_from_backoff):
            place, order = (self.active, self.active_order()) if self.active else (self.backoff, self.backoff_order())
            place.remove(order[0])
            if self.start(order[0]):
                return order[0]
        return None

    def pop_specific(self, pod: Pod, now: int) -> Record | None:
        self.activate_one(pod, now)
        record = self.drop(self.active, pod)
        return record if record is not None and self.start(record) else None

    def done(self, uid: str) -> None:
        record = self.uids_in_flight.pop(uid, None)
        if record is not None:
            self.in_flight.remove(record)
            while self.in_flight and isinstance(self.in_flight[0], tuple):
                del self.in_flight[0]

    def fail(
        self, record: Record, now: int, plugins: set[str], pending: set[str], nominated_node_name: str | None
    ) -> tuple[bool, str]:
        record.plugins, record.pending, record.gate = plugins, pending, ""
        known = self.lister(name(record.pod))
        uid = record.pod.metadata.uid
        if known is None or known.spec.node_name:
            self.done(uid)
            self.nominate(record.pod, nominated_node_name)
            return False, ""
        if known.metadata.uid != uid:
            self.done(uid)
            return False, ""
        record.pod = known
        error = self.add_unschedulable_if_not_present(record, now)
        self.nominate(record.pod, nominated_node_name)
        return True, error

    def add_unschedulable_if_not_present(self, record: Record, now: int) -> str:
        uid = record.pod.metadata.uid
        for place, text in (
            (self.unschedulable, "unschedulable queue"),
            (self.active, "the active queue"),
            (self.backoff, "the backoff queue"),
            (self.error_backoff, "the backoff queue"),
        ):
            if self.find(place, record.pod):
                self.done(uid)
                return f"Pod {name(record.pod)} is already present in {text}"
        rejected = bool(record.plugins or record.pending)
        record.unschedulable_count += rejected
        record.error_count = 0 if rejected else record.error_count + 1
        record.timestamp = now
        record.flushed = False
        strategy = SKIP
        if not rejected or uid not in self.uids_in_flight:
            strategy = LATER
        else:
            after = self.in_flight.index(self.uids_in_flight[uid])
            for entry in self.in_flight[after:]:
                if isinstance(entry, tuple):
                    strategy = max(strategy, self.worth(record, *entry))
        self.requeue(record, strategy, now)
        self.done(uid)
        return ""

    def move_all(
        self,
        event: ClusterEvent,
        old: object,
        new: object,
        now: int,
        pre_check: Callable[[Pod], bool] | None = None,
        only: list[Record] | None = None,
    ) -> None:
        registered = [entry for entries in self.hints.values() for entry in entries]
        if (event.resource, event.actions) != ("*", 8191) and not any(covers(entry[0], event) for entry in registered):
            return
        for record in list(self.unschedulable) if only is None else only:
            if pre_check is not None and not pre_check(record.pod):
                continue
            if record.gate and not any(entry[1] == record.gate and covers(entry[0], event) for entry in registered):
                continue
            strategy = self.worth(record, event, old, new)
            if strategy != SKIP:
                self.unschedulable.remove(record)
                self.requeue(record, strategy, now)
        if self.uids_in_flight:
            self.in_flight.append((event, old, new))

    def activate_one(self, pod: Pod, now: int) -> bool:
        record = self.find(self.unschedulable, pod)
        if record is not None:
            self.to_active(record, now)
        else:
            record = self.drop(self.backoff, pod) or self.drop(self.error_backoff, pod)
            if record is None:
                return False
            self.to_active(record, now, from_backoff=True)
        return record in self.active

    def activate(self, pods: Sequence[Pod], now: int) -> None:
        for pod in pods:
            if not self.activate_one(pod, now) and pod.metadata.uid in self.uids_in_flight:
                self.in_flight.append((FORCE_ACTIVATE, None, pod))

    def flush_backoff(self, now: int) -> None:
        over = [r for r in self.backoff_order() + self.error_backoff_order() if not self.backs_off(r, now)]
        for record in over:
            (self.backoff if record in self.backoff else self.error_backoff).remove(record)
        for record in over:
            self.to_active(record, now, from_backoff=True)

    def flush_unschedulable(self, now: int) -> None:
        over = [r for r in self.unschedulable if now - r.timestamp > self.options.max_in_unschedulable_ns]
        for record in over:
            record.flushed = True
        if over:
            self.move_all(UNSCHEDULABLE_TIMEOUT, None, None, now, only=over)

    def close(self) -> None:
        self.in_flight, self.uids_in_flight = [], {}

    # Nominations.

    def nominate(self, pod: Pod, nominated_node_name: str | None = None) -> None:
        self.unnominate(pod)
        if nominated_node_name is not None:
            node = nominated_node_name
        elif pod.status.nominated_node_name:
            node = pod.status.nominated_node_name
        else:
            return
        known = self.lister(name(pod))
        if known is not None and not known.spec.node_name:
            self.nominated.append((node, pod.metadata.uid, name(pod)))

    def unnominate(self, pod: Pod) -> None:
        self.nominated = [entry for entry in self.nominated if entry[1] != pod.metadata.uid]

    def update_nominated(self, old: Pod, new: Pod) -> None:
        nominated_node_name = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            for node, uid, _ in self.nominated:
                if uid == old.metadata.uid:
                    nominated_node_name = node
        self.unnominate(old)
        self.nominate(new, nominated_node_name)
