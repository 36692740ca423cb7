"""Merging of source objects into local objects."""

from __future__ import annotations

from bayplan.base.plain_data import Document, items, part, text
from bayplan.plugins.pod_claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from bayplan.sync.followed_kinds import FollowedKind

FINISHED = ("Succeeded", "Failed")
"""Phases of pods that have released their node."""

_POD_FIELDS = ("schedulingGates", "nodeSelector", "affinity", "activeDeadlineSeconds")
FOLLOWING_POD_FIELDS = (*_POD_FIELDS, "containers", "tolerations")
"""Fields of a pending pod's spec that may change."""

OF_THE_BINDING = (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
"""Annotations with which the scheduler, controllers and provisioners coordinate the binding of claims and volumes."""

_POD_NETWORK = ("podCIDR", "podCIDRs")
_GATED_FIELDS = ("schedulingGates", "nodeSelector", "affinity")
_CONDITION_TIMES = ("lastHeartbeatTime", "lastTransitionTime")
_OWN_METADATA = ("labels", "annotations", "ownerReferences")


def merge_object(kind: FollowedKind, here: Document, wanted: Document) -> Document:
    """Return the object to write: the source's content with the local identity.

    Args:
        kind: the kind of the object, except pods.
        here: the local object.
        wanted: the result of `translate`.
    """
    merged: Document = {name: value for name, value in wanted.items() if name not in ("metadata", "status")}
    merged["metadata"] = metadata = _metadata(here, wanted)
    if kind.kind in ("PersistentVolumeClaim", "PersistentVolume"):
        # The local controllers use these annotations when they bind, regardless of the source's annotations.
        own = {
            name: each for name, each in part(part(here, "metadata"), "annotations").items() if name in OF_THE_BINDING
        }
        metadata["annotations"] = {**own, **part(metadata, "annotations")}
    if "status" in here:
        merged["status"] = here["status"]
    spec, spec_here = part(wanted, "spec"), part(here, "spec")
    if kind.kind == "Service" and spec_here.get("clusterIP"):
        addresses: Document = {name: spec_here[name] for name in ("clusterIP", "clusterIPs") if name in spec_here}
        merged["spec"] = {**spec, **addresses}
    elif kind.kind == "Node" and spec_here.get("podCIDR"):
        # The API does not allow changing it.
        merged["spec"] = {**spec, **{name: spec_here[name] for name in _POD_NETWORK if name in spec_here}}
    elif kind.kind == "Namespace" and "spec" in here:
        merged["spec"] = spec_here
    return merged


def merge_status(here: Document, wanted: Document) -> Document | None:
    """Return the local object with the source's status, or None if it has that status already.

    A resource claim that is allocated locally is not changed: later allocations are local decisions. A node keeps the
    fields that its local kubelet has added, because the kubelet would add them again.
    """
    if "status" not in wanted:
        return None
    status, before = part(wanted, "status"), part(here, "status")
    if wanted.get("kind") == "Node":
        status = _node_status(before, status)
    if before == status:
        return None
    if wanted.get("kind") == "ResourceClaim" and "allocation" in before:
        return None
    return {**here, "status": status}


def _node_status(here: Document, wanted: Document) -> Document:
    """Return the desired status of a node, with local values for fields that only kubelets write."""
    status = dict(wanted)
    if not wanted.get("addresses") and "addresses" in here:
        status["addresses"] = here["addresses"]
    info = part(wanted, "nodeInfo")
    added = {name: each for name, each in part(here, "nodeInfo").items() if not info.get(name)}
    if added:
        status["nodeInfo"] = {**info, **added}
    if "conditions" in wanted:
        known = {text(each, "type"): each for each in items(here, "conditions")}
        status["conditions"] = [
            _with_times(each, known.get(text(each, "type"), {})) for each in items(wanted, "conditions")
        ]
    return status


def _with_times(condition: Document, here: Document) -> Document:
    times = {name: here[name] for name in _CONDITION_TIMES if here.get(name) and not condition.get(name)}
    return {**condition, **times}


def merge_waiting_pod(here: Document, wanted: Document) -> Document:
    """Return the local copy of a pod that is pending in the source, with the source's changes.

    The copy may have a node locally.
    """
    spec = dict(part(here, "spec"))
    _take(spec, part(wanted, "spec"), _POD_FIELDS)
    if "schedulingGates" in spec:
        # Gates can only be removed; a gate that was removed locally stays removed.
        gates_here = items(part(here, "spec"), "schedulingGates")
        spec["schedulingGates"] = [gate for gate in items(spec, "schedulingGates") if gate in gates_here]
    spec["containers"] = _containers(here, wanted, "image")
    # Tolerations can only be added; tolerations that local admission added stay.
    kept = items(spec, "tolerations")
    spec["tolerations"] = kept + [each for each in items(part(wanted, "spec"), "tolerations") if each not in kept]
    metadata = _metadata(here, wanted)
    # Local scheduling results are stored in annotations, so keep these; scheduling does not read annotations.
    metadata["annotations"] = {**part(part(here, "metadata"), "annotations"), **part(metadata, "annotations")}
    return {**here, "metadata": metadata, "spec": spec}


def resized(here: Document, wanted: Document) -> Document:
    """Return a pod with the source's container resources."""
    return {**here, "spec": {**part(here, "spec"), "containers": _containers(here, wanted, "resources")}}


def _containers(here: Document, wanted: Document, field: str) -> list[Document]:
    """Return the containers of a local pod with one field from the source."""
    theirs = {text(each, "name"): each for each in items(part(wanted, "spec"), "containers")}
    merged: list[Document] = []
    for container in items(part(here, "spec"), "containers"):
        other = theirs.get(text(container, "name"), container)
        merged.append({**container, field: other[field]} if field in other else container)
    return merged


def open_gates(here: Document, wanted: Document) -> Document:
    """Return a pod without scheduling gates, and with the source's fields that can change only while a pod is gated.

    The source has scheduled the pod, so its gates were removed before the binding, even if that change was not seen.
    """
    spec = dict(part(here, "spec"))
    _take(spec, part(wanted, "spec"), _GATED_FIELDS)
    return {**here, "spec": spec}


def finished_status(here: Document, source: Document) -> Document:
    """Return a local pod with the final status of the source."""
    ended = part(source, "status")
    names = ("phase", "conditions", "reason", "message", "containerStatuses", "startTime")
    status = {**part(here, "status"), **{name: ended[name] for name in names if name in ended}}
    return {**here, "status": status}


def is_finished(document: Document) -> bool:
    """Return whether a pod has finished."""
    return part(document, "status").get("phase") in FINISHED


def is_scheduled(document: Document) -> bool:
    """Return whether a pod has a node."""
    return bool(part(document, "spec").get("nodeName"))


def is_gated(document: Document) -> bool:
    """Return whether a pod has scheduling gates."""
    return bool(part(document, "spec").get("schedulingGates"))


def _metadata(here: Document, wanted: Document) -> Document:
    theirs = part(wanted, "metadata")
    metadata = dict(part(here, "metadata"))
    _take(metadata, theirs, _OWN_METADATA)
    return metadata


def _take(into: Document, source: Document, names: tuple[str, ...]) -> None:
    for name in names:
        if name in source:
            into[name] = source[name]
        else:
            into.pop(name, None)
