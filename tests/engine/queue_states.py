"""Convert the state of a scheduling queue, real or naive, to values that can be compared."""

from __future__ import annotations

from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import ObjectChange
from tests.oracle.queue import NaiveQueue, Record, name


def state(queue: SchedulingQueue | NaiveQueue) -> object:
    return real_state(queue) if isinstance(queue, SchedulingQueue) else naive_state(queue)


def real_state(queue: SchedulingQueue) -> object:
    nodes = sorted(queue.nominator)
    backing_off = queue.backing_off()
    return (
        queue.scheduling_cycle,
        [row(each) for each in queue.active()],
        [row(each) for each in backing_off if not each.failed_by_error],
        [row(each) for each in backing_off if each.failed_by_error],
        sorted(row(each) for each in queue.unschedulable()),
        [
            (each.event, each.old, each.new) if isinstance(each, ObjectChange) else each.key
            for each in queue.in_flight()
        ],
        {node: [*queue.nominator.on_node(node).items()] for node in nodes},
    )


def naive_state(queue: NaiveQueue) -> object:
    nodes = sorted({node for node, _, _ in queue.nominated})
    return (
        queue.cycle,
        [naive_row(each) for each in queue.active_order()],
        [naive_row(each) for each in queue.backoff_order()],
        [naive_row(each) for each in queue.error_backoff_order()],
        sorted(naive_row(each) for each in queue.unschedulable),
        [each if isinstance(each, tuple) else name(each.pod) for each in queue.in_flight],
        {node: [(uid, key) for at, uid, key in queue.nominated if at == node] for node in nodes},
    )


def row(queued: QueuedPod) -> tuple[object, ...]:
    return (
        queued.key,
        queued.pod.metadata.resource_version,
        queued.timestamp_ns,
        queued.attempts,
        queued.unschedulable_count,
        queued.error_count,
        -1 if queued.initial_attempt_ns is None else queued.initial_attempt_ns,
        sorted(queued.unschedulable_plugins),
        sorted(queued.pending_plugins),
        queued.gating_plugin,
        queued.flushed,
    )


def naive_row(record: Record) -> tuple[object, ...]:
    return (
        name(record.pod),
        record.pod.metadata.resource_version,
        record.timestamp,
        record.attempts,
        record.unschedulable_count,
        record.error_count,
        -1 if record.initial_attempt is None else record.initial_attempt,
        sorted(record.plugins),
        sorted(record.pending),
        record.gate,
        record.flushed,
    )
