"""The queueing hints of InterPodAffinity."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.framework.events import ActionType, ClusterEvent, EventResource, HintAnswer, QueueingHint, hint
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.affinity_terms import AffinityTerm, pod_terms


def events() -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
    """Return the events to register, with hints: pods added, deleted or relabelled, nodes added or relabelled."""
    pod_event = ClusterEvent(EventResource.POD, ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL)
    node_event = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    return ((pod_event, is_schedulable_after_pod_change), (node_event, is_schedulable_after_node_change))


@hint(Pod)
def is_schedulable_after_pod_change(pod: Pod, before: Pod | None, after: Pod | None) -> HintAnswer | bool:
    """Queue the pod if a change adds a pod that its affinity requires, or removes one that anti-affinity rejects."""
    if before is not None and after is not None and pod.metadata.uid == after.metadata.uid:
        return True
    if any(other is not None and _has_no_match(other) for other in (before, after)):
        return False
    terms = pod_terms(pod)
    if terms.error:
        return HintAnswer.ERROR
    needs, avoids = terms.required_affinity, terms.required_anti_affinity
    if before is not None and after is not None:
        came = not _all_match(needs, before) and _all_match(needs, after)
        return came or (_all_match(avoids, before) and not _all_match(avoids, after))
    if after is not None:
        return _all_match(needs, after)
    if before is None:
        return HintAnswer.ERROR
    if _all_match(avoids, before):
        return True
    others = pod_terms(before)
    if others.error and not others.required_anti_affinity:
        return HintAnswer.ERROR
    return _all_match(others.required_anti_affinity, pod)


@hint(Node, new=True)
def is_schedulable_after_node_change(pod: Pod, before: Node | None, after: Node) -> HintAnswer | bool:
    """Queue the pod if a node joined a domain of its required terms, or left one of its anti-affinity terms."""
    terms = pod_terms(pod)
    if terms.error:
        return HintAnswer.ERROR
    for term in terms.required_affinity:
        value = after.metadata.labels.get(term.topology_key)
        known = before.metadata.labels.get(term.topology_key) if before is not None else None
        if value is not None and value != known:
            return True
    for term in terms.required_anti_affinity:
        if before is None:
            return True
        known = before.metadata.labels.get(term.topology_key)
        if known is not None and known != after.metadata.labels.get(term.topology_key):
            return True
    return False


def _has_no_match(pod: Pod) -> bool:
    """Return whether a pod is neither on a node nor nominated to one, so that it can't affect other pods."""
    return not pod.spec.node_name and not pod.status.nominated_node_name


def _all_match(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Return whether there are terms and all match a pod; compares namespaces only by name."""
    if not terms:
        return False
    return all(term.matches(pod.metadata.namespace, pod.metadata.labels, {}) for term in terms)
