"""Which rejected pods a new or changed assigned pod may help through its location, as upstream decided before queueing hints.

The scheduler of 1.36 uses hints instead; the queue still offers the old rule to hosts that need it.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.engine.queued_pod import QueuedPod
from bayplan.objects.affinity import PodAffinityTerm
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import SelectorError, compile_label_selector

TOPOLOGY_SPREAD = "PodTopologySpread"


def may_be_helped(queued: QueuedPod, assigned: Pod, namespace_labels: Mapping[str, str]) -> bool:
    """Return whether an assigned pod counts for the spreading or the required affinity of a rejected pod.

    `namespace_labels` are those of the assigned pod's namespace.
    """
    pod = queued.pod
    if TOPOLOGY_SPREAD in queued.unschedulable_plugins and pod.metadata.namespace == assigned.metadata.namespace:
        return True
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        return False
    terms = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
    try:
        # All terms are compiled before any is matched: one invalid term invalidates the others.
        matches = [_selects(term, pod, assigned, namespace_labels) for term in terms]
    except SelectorError:
        return False
    return any(matches)


def _selects(term: PodAffinityTerm, owner: Pod, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
    selector = compile_label_selector(term.label_selector)
    namespace_selector = compile_label_selector(term.namespace_selector)
    namespaces = term.namespaces
    if not namespaces and term.namespace_selector is None:
        namespaces = (owner.metadata.namespace,)
    if pod.metadata.namespace not in namespaces and not namespace_selector.matches(namespace_labels):
        return False
    return selector.matches(pod.metadata.labels)
