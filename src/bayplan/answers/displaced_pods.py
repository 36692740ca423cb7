"""Pods that lose their node: which of them are recreated, and in which form."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.cluster.owned_pods import is_active, is_daemon_pod
from bayplan.objects.pod import Pod, PodStatus

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of mirror pods. They represent static pods, which the kubelet runs from files on its node."""


def stays_on_node(pod: Pod) -> bool:
    """Return whether a pod always stays on its node: pods of DaemonSets are recreated there, and mirror pods can't be evicted."""
    owner = pod.metadata.controller()
    is_static = MIRROR in pod.metadata.annotations or (owner is not None and owner.kind == "Node")
    return is_static or is_daemon_pod(pod)


def is_recreated_elsewhere(pod: Pod) -> bool:
    """Return whether a pod is recreated elsewhere when its node is removed. A drain evicts only such pods.

    Pods of DaemonSets, mirror pods, finished pods and terminating pods are not recreated elsewhere. Pods without a
    controller would be lost in a real cluster, but are recreated as copies in answers, whose assumptions say so.
    """
    return is_active(pod) and not stays_on_node(pod)


def is_recreated(pod: Pod) -> bool:
    """Return whether a controller recreates the pod after a deletion, possibly on another node."""
    return pod.metadata.controller() is not None and not stays_on_node(pod)


def is_sibling(pod: Pod, other: Pod) -> bool:
    """Return whether both pods have the same controller."""
    owner, others = pod.metadata.controller(), other.metadata.controller()
    if owner is None or others is None or pod.metadata.namespace != other.metadata.namespace:
        return False
    return (owner.kind, owner.name) == (others.kind, others.name)


def as_waiting(pod: Pod) -> Pod:
    """Return a pod as its controller recreates it: waiting, without a node, and with the same claims."""
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    metadata = replace(pod.metadata, deletion_timestamp=None, resource_version="")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=status)
