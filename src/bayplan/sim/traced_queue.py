"""A scheduling queue that records when pods move between its tiers, for `bayplan simulate --timeline`.

It is upstream's queue with all its timers. The queue that simulations normally use
(`bayplan.engine.event_driven_queue`) skips attempts that could only fail again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from bayplan.engine.nominated_pods import PodLister
from bayplan.engine.queue import PreEnqueue, SchedulingQueue
from bayplan.engine.queue_options import DEFAULT_OPTIONS, QueueOptions
from bayplan.engine.queued_pod import NO_PLUGINS, KeyFunction, QueuedPod, key_of, priority_sort
from bayplan.framework.events import HintTable
from bayplan.objects.pod import Pod

NEW = ""
IN_FLIGHT = "in flight"
GATED = "gated"
BOUND = "bound"
GONE = "gone"
PERMIT = "permit"


class QueueMove(msgspec.Struct):
    """A move of a pod between tiers.

    Attributes:
        time_ns: the time of the move.
        pod, uid: the pod's key and uid.
        source, target: the tiers: `active`, `backoff`, `error backoff`, `unschedulable`, `gated`, `in flight`, `permit`
            (it waits at Permit); `""` before it was added; `bound` and `gone` are final.
        attempt: the number of its attempts so far.
        cause: the event that moved it, by upstream's label (`BackoffComplete`, `AssignedPodDelete`, ...), or another
            cause.
        plugins: the plugins that rejected it in its last attempt, or that gate it.
        backoff_end_ns: for a backoff tier, the end of the backoff; the pod leaves at the queue's next check after that.
        note: the message of a failed attempt, or the name of the node that it was bound to.
    """

    time_ns: int
    pod: str
    uid: str
    source: str
    target: str
    attempt: int
    cause: str
    plugins: tuple[str, ...] = ()
    backoff_end_ns: int | None = None
    note: str = ""


class TracedQueue(SchedulingQueue):
    """A `SchedulingQueue` that records all moves; arguments as for `SchedulingQueue`.

    Attributes:
        moves: the moves, in the order in which they happened.
        clock: returns the virtual time; set by the simulator.
    """

    def __init__(
        self,
        hints: HintTable,
        pre_enqueue: Mapping[str, Sequence[tuple[str, PreEnqueue]]],
        pod_lister: PodLister,
        *,
        sort_key: KeyFunction = priority_sort,
        options: QueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(hints, pre_enqueue, pod_lister, sort_key=sort_key, options=options)
        self.moves: list[QueueMove] = []
        self.clock: Callable[[], int] = lambda: options.start_ns
        # The current tier of each pod, by uid.
        self._seen: dict[str, str] = {}
        self._last: dict[str, QueueMove] = {}

    # Recording moves.

    def _note(self, queued: QueuedPod, target: str, cause: str, note: str = "") -> None:
        source = self._seen.get(queued.uid, NEW)
        if source == target:
            return
        backs_off = target in ("backoff", "error backoff")
        move = QueueMove(
            self.clock(),
            queued.key,
            queued.uid,
            source,
            target,
            queued.attempts,
            cause,
            (*sorted(queued.unschedulable_plugins | queued.pending_plugins),),
            queued.backoff_expiry_ns if backs_off else None,
            note,
        )
        self.moves.append(move)
        self._last[queued.uid] = move
        if target in (BOUND, GONE):
            del self._last[queued.uid]
            self._seen.pop(queued.uid, None)
        else:
            self._seen[queued.uid] = target

    def add_message(self, uid: str, message: str) -> None:
        """Add the message of an attempt to the move that the attempt ended with."""
        last = self._last.get(uid)
        if last is not None and not last.note:
            last.note = message

    def wait_for_permit(self, queued: QueuedPod, node_name: str) -> None:
        """Record that a pod waits at Permit for a node."""
        self._note(queued, PERMIT, "Wait", node_name)

    # Overridden operations.

    def _to_active(self, queued: QueuedPod, now_ns: int, label: str, from_backoff: bool = False) -> bool:
        moved = super()._to_active(queued, now_ns, label, from_backoff)
        if moved:
            self._note(queued, "active", label)
        return moved

    def _to_backoff(self, queued: QueuedPod, label: str) -> None:
        super()._to_backoff(queued, label)
        if queued.key in self._backoff:
            self._note(queued, self._tier_of(queued), label)

    def _to_unschedulable(self, queued: QueuedPod, label: str) -> None:
        super()._to_unschedulable(queued, label)
        self._note(queued, self._tier_of(queued), label)

    def pop(self) -> QueuedPod | None:
        """Pop the next pod, which is in flight from then on; see `SchedulingQueue.pop`."""
        queued = super().pop()
        if queued is not None:
            early = self._seen.get(queued.uid) == "backoff"
            self._note(queued, IN_FLIGHT, "PopFromBackoffQ" if early else "Pop")
        return queued

    def pop_specific(self, pod: Pod, now_ns: int) -> QueuedPod | None:
        """Pop a pod out of turn, wherever it is in the queue; see `SchedulingQueue.pop_specific`."""
        queued = super().pop_specific(pod, now_ns)
        if queued is not None:
            self._note(queued, IN_FLIGHT, "PopSpecificPod")
        return queued

    def fail(
        self,
        queued: QueuedPod,
        now_ns: int,
        *,
        unschedulable_plugins: frozenset[str] = NO_PLUGINS,
        pending_plugins: frozenset[str] = NO_PLUGINS,
        nominated_node_name: str | None = None,
    ) -> str | None:
        """Return a pod whose attempt failed to the queue; see `SchedulingQueue.fail`."""
        outcome = super().fail(
            queued,
            now_ns,
            unschedulable_plugins=unschedulable_plugins,
            pending_plugins=pending_plugins,
            nominated_node_name=nominated_node_name,
        )
        if outcome is None and self._seen.get(queued.uid) in (IN_FLIGHT, PERMIT):
            self._note(queued, GONE, "Done")
        return outcome

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or bound; see `SchedulingQueue.delete`."""
        key = key_of(pod)
        queued = self.get(key)
        super().delete(pod)
        known = self._pod_lister(key)
        record = (
            queued if queued is not None else QueuedPod(pod, key, pod.metadata.uid or key, 0, 0, self._attempts(pod))
        )
        if known is not None and known.spec.node_name:
            self._note(record, BOUND, "Bind", known.spec.node_name)
        elif record.uid in self._seen:
            self._note(record, GONE, "UnschedulablePodDelete")

    def _attempts(self, pod: Pod) -> int:
        last = self._last.get(pod.metadata.uid or key_of(pod))
        return last.attempt if last is not None else 0

    def _tier_of(self, queued: QueuedPod) -> str:
        """Return the name of the tier of a pod that waits for an event or in backoff."""
        if queued.key in self._backoff.rejected:
            return "backoff"
        if queued.key in self._backoff.failed:
            return "error backoff"
        return GATED if queued.gating_plugin else "unschedulable"
