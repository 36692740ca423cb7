"""Copies of the scheduling queue, made by the engine between two cycles, at a bounded cost to its throughput."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from time import monotonic
from typing import NamedTuple

import numpy as np
from msgspec.structs import asdict

from bayplan.analysis.cluster_sentences import queue_sentence
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import EngineBusy
from bayplan.base.go_text.times import format_instant
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.plugin import Plugin
from bayplan.http_api.contract.queue import QueueCounts, QueueList, QueueRow, WaitHistogram
from bayplan.http_api.server_context import Engine
from bayplan.live.instrumented_queue import InstrumentedQueue

TIERS = ("active", "backoff", "unschedulable", "gated")
COPY_TIMEOUT_S = 0.1
BUSY_SECONDS = 1.0
"""Time to wait after an engine timeout before asking again: a plugin may take seconds, and requests should not wait for it."""

MIN_AGE_SECONDS = 0.1
MAX_SHARE = 20
"""A copy is valid for this many times the time it took to make, so that copying takes at most a twentieth of the engine's time."""

WAIT_BOUNDS_SECONDS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)


class WaitingPod(NamedTuple):
    """A pod in the queue.

    Attributes:
        key: ``namespace/name``.
        scheduler_name: the name of its scheduler.
        priority, attempts: the priority, and the number of scheduling attempts.
        tier: one of `TIERS`.
        since_ns: the time when the pod was queued, or of its last failed attempt.
        retry_ns: when its backoff ends; None unless it is in backoff.
        rejected_by: the plugins that rejected the pod or gate it.
        message: the message of the plugin that gates the pod, or "".
    """

    key: str
    scheduler_name: str
    priority: int
    attempts: int
    tier: str
    since_ns: int
    retry_ns: int | None
    rejected_by: tuple[str, ...]
    message: str = ""


class QueueCopy(NamedTuple):
    """A copy of the queue.

    Attributes:
        version: changes if the contents differ from those of the previous copy.
        tiers: the pods by tier, in the order of the queue.
        by_key: the pods by key.
        wakes_on: by scheduler name and plugin, the events after which the plugin lets pods be retried.
    """

    version: int
    tiers: Mapping[str, Sequence[WaitingPod]]
    by_key: Mapping[str, WaitingPod]
    wakes_on: Mapping[tuple[str, str], tuple[str, ...]]

    @property
    def counts(self) -> QueueCounts:
        """Return the number of pods in each tier."""
        return QueueCounts(**{tier: len(self.tiers.get(tier, ())) for tier in TIERS})


EMPTY = QueueCopy(0, {}, {}, {})


class QueueView:
    """Cached copies of the queue. Use on any thread except the event loop.

    Args:
        engine: the engine that owns the queue.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._copy = EMPTY
        self._fresh_until = 0.0
        self._is_forgotten = False
        self._lock = Lock()

    def copy(self) -> QueueCopy:
        """Return a copy of the queue, which may be slightly out of date.

        Raises:
            EngineBusy: there is no copy yet, and the engine does not respond.
        """
        with self._lock:
            begun = monotonic()
            if self._is_forgotten or begun >= self._fresh_until:
                self._is_forgotten = False
                self._refresh(begun)
            if self._copy is EMPTY:
                raise EngineBusy("the scheduler is busy, and its queue has not been read yet")
            return self._copy

    def _refresh(self, begun: float) -> None:
        """Make a new copy. If the engine does not respond, keep the previous one for a while."""
        try:
            tiers, events = self._engine.call(_copy_queue, COPY_TIMEOUT_S)
        except EngineBusy:
            self._fresh_until = monotonic() + BUSY_SECONDS
            return
        by_key = {pod.key: pod for pods in tiers.values() for pod in pods}
        same = tiers == self._copy.tiers and self._copy is not EMPTY
        self._copy = QueueCopy(self._copy.version + (not same), tiers, by_key, events)
        now = monotonic()
        self._fresh_until = now + max(MIN_AGE_SECONDS, MAX_SHARE * (now - begun))

    def forget(self) -> None:
        """Invalidate the copy because the queue was changed. For any thread."""
        # Don't take the lock: it is held during requests to the engine, for which the event loop must not wait.
        self._is_forgotten = True


def _copy_queue(
    scheduler: Scheduler,
) -> tuple[dict[str, list[WaitingPod]], dict[tuple[str, str], tuple[str, ...]]]:
    """Copy the queue and the plugins' events. Runs on the engine's thread."""
    queue = scheduler.queue
    tiers: dict[str, list[WaitingPod]] = {tier: [] for tier in TIERS}
    tiers["active"] = [_waiting(queued, "active") for queued in queue.active()]
    tiers["backoff"] = sorted(
        (_waiting(queued, "backoff") for queued in queue.backing_off()),
        key=lambda pod: (pod.retry_ns or 0, pod.key),
    )
    for queued in queue.unschedulable():
        tier = "gated" if queued.gating_plugin else "unschedulable"
        waiting = _waiting(queued, tier)
        gate = queue.gate_of(queued.key) if queued.gating_plugin and isinstance(queue, InstrumentedQueue) else None
        tiers[tier].append(waiting if gate is None else waiting._replace(message=gate.message))
    for tier in ("unschedulable", "gated"):
        tiers[tier].sort(key=lambda pod: (pod.since_ns, pod.key))
    events = {
        (name, plugin.name): _events_of(plugin)
        for name, profile in scheduler.profiles.items()
        for plugin in profile.plugins.values()
    }
    return tiers, events


def _waiting(queued: QueuedPod, tier: str) -> WaitingPod:
    rejected = queued.unschedulable_plugins | queued.pending_plugins
    if queued.gating_plugin:
        rejected |= {queued.gating_plugin}
    return WaitingPod(
        queued.key,
        queued.pod.spec.scheduler_name,
        queued.priority,
        queued.attempts,
        tier,
        queued.timestamp_ns,
        queued.backoff_expiry_ns if tier == "backoff" else None,
        tuple(sorted(rejected)),
    )


def _events_of(plugin: Plugin[object]) -> tuple[str, ...]:
    """Return upstream's labels of the events that a plugin registers; ``*`` if it registers none."""
    return tuple(dict.fromkeys(event.label for event, _ in plugin.events_to_register())) or ("*",)


# --- output -----------------------------------------------------------------------------------------------------------


def queue_document(queue: QueueCopy, tier: str, offset: int, limit: int, now_ns: int) -> QueueList:
    """Return a page of the queue.

    Args:
        queue: a copy of the queue.
        tier: one of `TIERS`, or "" for all tiers in order.
        offset, limit: the offset and limit of the page.
        now_ns: the present time.
    """
    tiers = (tier,) if tier else TIERS
    pods = [pod for each in tiers for pod in queue.tiers.get(each, ())]
    page = pods[offset : offset + limit]
    return QueueList(
        version=queue.version,
        summary=sentence_of(queue, now_ns),
        counts=queue.counts,
        next_retry_at=next_retry_at(queue),
        items=[queue_row(queue, pod, offset + place) for place, pod in enumerate(page)],
        total=len(pods),
        total_is_exact=True,
        offset=offset,
        limit=limit,
        histogram=_histogram(pods, now_ns),
    )


def sentence_of(queue: QueueCopy, now_ns: int) -> str:
    """Return a one-sentence summary of the queue."""
    first = next(iter(queue.tiers.get("backoff", ())), None)
    left = None if first is None or first.retry_ns is None else first.retry_ns - now_ns
    return queue_sentence(asdict(queue.counts), next_retry_in_ns=left, next_pod="" if first is None else first.key)


def next_retry_at(queue: QueueCopy) -> str | None:
    """Return the time at which the next backoff ends; None if no pod is in backoff."""
    first = next(iter(queue.tiers.get("backoff", ())), None)
    return None if first is None or first.retry_ns is None else format_instant(first.retry_ns)


def queue_row(queue: QueueCopy, pod: WaitingPod, position: int) -> QueueRow:
    """Return a pod of the queue; `position` is its place in the list."""
    namespace, _, name = pod.key.partition("/")
    wakes_on = (queue.wakes_on.get((pod.scheduler_name, plugin), ()) for plugin in pod.rejected_by)
    return QueueRow(
        namespace=namespace,
        name=name,
        position=position,
        priority=pod.priority,
        attempts=pod.attempts,
        tier=pod.tier,
        since=format_instant(pod.since_ns),
        retry_at=None if pod.retry_ns is None else format_instant(pod.retry_ns),
        rejected_by=list(pod.rejected_by),
        message=pod.message,
        wakes_on=list(dict.fromkeys(event for events in wakes_on for event in events)),
    )


def _histogram(pods: Sequence[WaitingPod], now_ns: int) -> WaitHistogram:
    """Count pods by waiting time. The last number is for pods beyond all bounds."""
    waited = np.array([now_ns - pod.since_ns for pod in pods], dtype=np.int64)
    bounds = np.array(WAIT_BOUNDS_SECONDS, dtype=np.int64) * SECOND_NS
    counts = np.bincount(np.searchsorted(bounds, waited), minlength=len(bounds) + 1)
    return WaitHistogram(seconds=list(WAIT_BOUNDS_SECONDS), pods=counts.tolist())
