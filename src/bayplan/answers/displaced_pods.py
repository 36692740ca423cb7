"""Pods that lose their node: which of them come back, in which form, and which end with it."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.cluster.owned_pods import is_active
from bayplan.objects.pod import Pod, PodStatus

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of mirror pods: the kubelet runs them from a file of its node, so they are gone with it."""


def stays_on_node(pod: Pod) -> bool:
    """Return whether a pod always stays on its node: DaemonSet pods are recreated there, and static pods can't be evicted."""
    owner = pod.metadata.controller()
    return MIRROR in pod.metadata.annotations or (owner is not None and owner.kind in ("DaemonSet", "Node"))


def comes_back(pod: Pod) -> bool:
    """Return whether a pod is recreated elsewhere when its node is removed; a drain does not evict any other pod.

    Pods of DaemonSets, mirror pods, finished pods and pods that are being deleted are not. Pods without a controller would be
    lost in a real cluster; here they come back as copies, which every answer states.
    """
    return is_active(pod) and not stays_on_node(pod)


def is_recreated(pod: Pod) -> bool:
    """Return whether a controller recreates a deleted pod, on any node."""
    return pod.metadata.controller() is not None and not stays_on_node(pod)


def is_sibling(pod: Pod, other: Pod) -> bool:
    """Return whether one controller makes both pods."""
    owner, others = pod.metadata.controller(), other.metadata.controller()
    if owner is None or others is None or pod.metadata.namespace != other.metadata.namespace:
        return False
    return (owner.kind, owner.name) == (others.kind, others.name)


def as_waiting(pod: Pod) -> Pod:
    """Return a pod as its controller recreates it: without a node, and with the same claims."""
    status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
    metadata = replace(pod.metadata, deletion_timestamp=None, resource_version="")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=status)
