"""Failed attempts: requeue the pod, and return the actions for its event, condition and nomination.

Implements upstream's handleSchedulingFailure, and the effects of a preemption on other pods once its node and victims
are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayplan.engine.actions import IN_MEMORY, Action, Emit, Evict, Nominate, SetCondition
from bayplan.engine.queued_pod import QueuedPod, uid_of
from bayplan.framework.diagnosis import PostFilterResult
from bayplan.framework.status import Status, error
from bayplan.objects.pod import Pod

if TYPE_CHECKING:
    from bayplan.engine.scheduler import Scheduler

MAX_EVENT_NOTE = 1024
"""Upstream truncates longer event notes and appends three dots."""


def handle_scheduling_failure(
    scheduler: Scheduler,
    queued: QueuedPod,
    failure: Status,
    rejecting: Sequence[str],
    found: PostFilterResult | None,
    now_ns: int,
    pending: Sequence[str] = (),
) -> list[Action]:
    """Requeue the pod of a failed attempt, and return the actions for the host.

    Args:
        scheduler: the scheduler that made the attempt.
        queued: the popped record.
        failure: code and message.
        rejecting: the plugins that rejected the pod, whose events may bring it back; empty if an error ended the
            attempt.
        found: the result of PostFilter: names the node to nominate, or "" to clear the nomination; None leaves it
            unchanged.
        now_ns: the time.
        pending: the plugins among `rejecting` that returned Pending; their events skip the backoff.
    """
    nominated_node_name = found.nominated_node_name if found is not None else None
    known = scheduler.pods.get(queued.key)
    scheduler.queue.fail(
        queued,
        now_ns,
        unschedulable_plugins=frozenset(rejecting),
        pending_plugins=frozenset(pending),
        nominated_node_name=nominated_node_name,
    )
    if known is not None and not known.spec.node_name and uid_of(known) != queued.uid:
        # Another pod of the same name has been created since; nothing is reported about this one.
        return []
    pod = queued.pod
    note = failure.message
    if len(note) > MAX_EVENT_NOTE:
        note = note[: MAX_EVENT_NOTE - 4] + " ..."
    reason = "Unschedulable" if failure.code.rejects else "SchedulerError"
    actions: list[Action] = [
        Emit(pod, "Warning", "FailedScheduling", "Scheduling", note),
        SetCondition(pod, reason, failure.message),
    ]
    if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
        actions.append(Nominate(pod, nominated_node_name))
    if found is not None and nominated_node_name:
        actions += _actuate_preemption(scheduler, pod, found, now_ns)
    return actions


def _actuate_preemption(scheduler: Scheduler, preemptor: Pod, found: PostFilterResult, now_ns: int) -> list[Action]:
    """Clear nominations of lower priority and evict victims. Victims that wait at Permit are rejected instead."""
    node_name = found.nominated_node_name or ""
    actions: list[Action] = []
    for other in scheduler.lower_nominations(preemptor, node_name) if found.clears_nominations else ():
        scheduler.queue.nominator.remove(uid_of(other))
        actions.append(Nominate(other, ""))
    for key in found.victims:
        victim = scheduler.pods.get(key)
        if victim is None or victim.metadata.deletion_timestamp is not None:
            continue
        note = f"Preempted by pod {uid_of(preemptor)} on node {node_name}"
        if scheduler.waiting_pods.get(key) is not None:
            rejection = error("waiting on permit for pod: preempted")
            actions += scheduler.reject_waiting_pod(key, rejection, now_ns)
            note += IN_MEMORY
        else:
            actions.append(Evict(victim, preemptor, node_name))
        actions.append(Emit(victim, "Normal", "Preempted", "Preempting", note))
    return actions
