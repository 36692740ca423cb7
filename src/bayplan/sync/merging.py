"""What changes about an object here when it changes in the source."""

from __future__ import annotations

from bayplan.base.plain_data import Document
from bayplan.plugins.pod_claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from bayplan.sync.document import items, part, text
from bayplan.sync.followed_kinds import FollowedKind

FINISHED = ("Succeeded", "Failed")
"""Phases of pods that have given back their node."""

_POD_FIELDS = ("schedulingGates", "nodeSelector", "affinity", "activeDeadlineSeconds")
FOLLOWING_POD_FIELDS = (*_POD_FIELDS, "containers", "tolerations")
"""What of a waiting pod's spec may change."""

OF_THE_BINDING = (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
"""Annotations of claims and volumes by which scheduler, controllers and provisioners tell one another how far they are."""

_POD_NETWORK = ("podCIDR", "podCIDRs")
_GATED_FIELDS = ("schedulingGates", "nodeSelector", "affinity")
_CONDITION_TIMES = ("lastHeartbeatTime", "lastTransitionTime")
_OWN_METADATA = ("labels", "annotations", "ownerReferences")


def merge_object(kind: FollowedKind, here: Document, wanted: Document) -> Document:
    """Return an object as it is to be written: the source's content, with the identity that it has here.

    Args:
        kind: not pods.
        here: as it is here.
        wanted: as `translate` makes it.
    """
    merged: Document = {name: value for name, value in wanted.items() if name not in ("metadata", "status")}
    merged["metadata"] = metadata = _metadata(here, wanted)
    if kind.kind in ("PersistentVolumeClaim", "PersistentVolume"):
        # Who binds here has nothing else to go by, whatever else is annotated in the source.
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
        # Once it is set, the API does not let it change.
        merged["spec"] = {**spec, **{name: spec_here[name] for name in _POD_NETWORK if name in spec_here}}
    elif kind.kind == "Namespace" and "spec" in here:
        merged["spec"] = spec_here
    return merged


def merge_status(here: Document, wanted: Document) -> Document | None:
    """Return an object with the status that it has in the source, or None if it has that already.

    A resource claim that is allocated here stays so: what it was allocated to later was decided here. A node keeps the fields that
    its kubelet here has added, because the kubelet would add them again at once.
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
    """Return the wanted status of a node, with the fields of the one here that it lacks of those that kubelets write."""
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
    """Return a pod that waits in the source with what has changed about it there, on the node that it may have here."""
    spec = dict(part(here, "spec"))
    _take(spec, part(wanted, "spec"), _POD_FIELDS)
    if "schedulingGates" in spec:
        # Gates can only go; one that was opened here stays open.
        gates_here = items(part(here, "spec"), "schedulingGates")
        spec["schedulingGates"] = [gate for gate in items(spec, "schedulingGates") if gate in gates_here]
    spec["containers"] = _containers(here, wanted, "image")
    # Tolerations can only come; those that admission here has added stay.
    kept = items(spec, "tolerations")
    spec["tolerations"] = kept + [each for each in items(part(wanted, "spec"), "tolerations") if each not in kept]
    metadata = _metadata(here, wanted)
    # Results of scheduling here stand in annotations, which scheduling does not read.
    metadata["annotations"] = {**part(part(here, "metadata"), "annotations"), **part(metadata, "annotations")}
    return {**here, "metadata": metadata, "spec": spec}


def resized(here: Document, wanted: Document) -> Document:
    """Return a pod whose containers ask for what they ask for in the source."""
    return {**here, "spec": {**part(here, "spec"), "containers": _containers(here, wanted, "resources")}}


def _containers(here: Document, wanted: Document, field: str) -> list[Document]:
    """Return the containers of a pod here with one field as in the source."""
    theirs = {text(each, "name"): each for each in items(part(wanted, "spec"), "containers")}
    merged: list[Document] = []
    for container in items(part(here, "spec"), "containers"):
        other = theirs.get(text(container, "name"), container)
        merged.append({**container, field: other[field]} if field in other else container)
    return merged


def open_gates(here: Document, wanted: Document) -> Document:
    """Return a pod without scheduling gates, and with what could change in the source only while it had them.

    The source has scheduled the pod, so its gates are gone there; that they went before it was bound is certain even where
    nobody saw it happen.
    """
    spec = dict(part(here, "spec"))
    _take(spec, part(wanted, "spec"), _GATED_FIELDS)
    return {**here, "spec": spec}


def finished_status(here: Document, source: Document) -> Document:
    """Return a pod that has ended as it has in the source."""
    ended = part(source, "status")
    names = ("phase", "conditions", "reason", "message", "containerStatuses", "startTime")
    status = {**part(here, "status"), **{name: ended[name] for name in names if name in ended}}
    return {**here, "status": status}


def is_finished(document: Document) -> bool:
    """Say whether a pod has ended."""
    return part(document, "status").get("phase") in FINISHED


def is_scheduled(document: Document) -> bool:
    """Say whether a pod has a node."""
    return bool(part(document, "spec").get("nodeName"))


def is_gated(document: Document) -> bool:
    """Say whether a pod has scheduling gates."""
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
