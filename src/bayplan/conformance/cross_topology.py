"""Events of assigned pods as the queue processed them before queueing hints: move waiting pods that such a pod may help.

Upstream's queue still has these methods, and recorded traces call them. The scheduler of 1.36 leaves the decision to
the hints.
"""

from __future__ import annotations

from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod, key_of
from bayplan.framework.events import ASSIGNED_POD_ADD, ActionType, ClusterEvent, EventResource
from bayplan.objects.affinity import PodAffinityTerm
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import SelectorError, compile_label_selector

TOPOLOGY_SPREAD = "PodTopologySpread"

_SCALE_DOWN = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCALE_DOWN)


def assigned_pod_added(queue: SchedulingQueue, pod: Pod, now_ns: int) -> int:
    """Move the pods that a new assigned pod may help; return their number."""
    return _move(queue, ASSIGNED_POD_ADD, None, pod, now_ns)


def assigned_pod_updated(queue: SchedulingQueue, event: ClusterEvent, old: Pod, new: Pod, now_ns: int) -> int:
    """Move the pods that a change of an assigned pod may help; return their number.

    Scaling a pod down may help all pods.
    """
    if _SCALE_DOWN.matches(event):
        return queue.move_all(event, old, new, now_ns)
    return _move(queue, event, old, new, now_ns)


def _move(queue: SchedulingQueue, event: ClusterEvent, old: Pod | None, new: Pod, now_ns: int) -> int:
    def may_be_helped(pod: Pod) -> bool:
        queued = queue.get(key_of(pod))
        return queued is not None and _may_be_helped(queued, new)

    return queue.move_all(event, old, new, now_ns, may_be_helped)


def _may_be_helped(queued: QueuedPod, assigned: Pod) -> bool:
    """Return whether an assigned pod may help a rejected pod, by its topology spread or its required affinity."""
    pod = queued.pod
    if TOPOLOGY_SPREAD in queued.unschedulable_plugins and pod.metadata.namespace == assigned.metadata.namespace:
        return True
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        return False
    terms = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    try:
        # Compile all terms before matching any: one invalid term makes the whole affinity match nothing.
        matches = [_selects(term, pod, assigned) for term in terms]
    except SelectorError:
        return False
    return any(matches)


def _selects(term: PodAffinityTerm, owner: Pod, pod: Pod) -> bool:
    selector = compile_label_selector(term.label_selector)
    namespace_selector = compile_label_selector(term.namespace_selector)
    namespaces = term.namespaces
    if not namespaces and term.namespace_selector is None:
        namespaces = (owner.metadata.namespace,)
    if pod.metadata.namespace not in namespaces and not namespace_selector.matches({}):
        return False
    return selector.matches(pod.metadata.labels)
