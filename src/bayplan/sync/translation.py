"""A source's object as it is wanted here: without what belongs to the other cluster, with the uids that things have here.

- uid, resourceVersion, times, managed fields and finalizers are the other cluster's: its controllers are not here to act on them.
- Owners are left out, so that nothing here is collected or doubled; but a claim that a pod owns belongs to that pod's copy,
  because the scheduler asks whose claim it is.
- A pod's service account is not here; its priority follows from its class again.
- A persistent volume's claimRef has the uid that its claim has here. What is bound there is bound here: volumes follow the source.
- A resource claim is allocated here as it is there only to pods that keep their nodes; all others are for the scheduler here.
"""

from __future__ import annotations

from typing import Protocol, cast

from bayplan.sync.document import Document, items, part, text
from bayplan.sync.followed_kinds import FollowedKind, ObjectRef
from bayplan.sync.policy import SOURCE_UID


class Here(Protocol):
    """What translation asks about the cluster here."""

    def uid_of(self, ref: ObjectRef) -> str | None:
        """Return the uid that an object has here, or None while it is not here."""
        ...

    def keeps_node(self, ref: ObjectRef) -> bool:
        """Return whether a pod is here on the node that it had when following began."""
        ...


_KEPT_METADATA = ("name", "generateName", "namespace", "labels", "annotations")


class Awaited(Exception):
    """The object can't be written before another one is here.

    Args:
        ref: that one.
    """

    def __init__(self, ref: ObjectRef) -> None:
        self.ref = ref
        super().__init__(f"waits for {ref}")


def translate(kind: FollowedKind, source: Document, here: Here, *, keeps_node: bool = False) -> Document:
    """Return a new document to be created here, with the status that it should have.

    Args:
        kind: of the object.
        source: as the source has it; it is not changed.
        here: see `Here`.
        keeps_node: let a pod stay where it is.

    Raises:
        Awaited: it names an object that is not here yet.
    """
    metadata = part(source, "metadata")
    kept: Document = {name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)}
    kept["annotations"] = {**part(metadata, "annotations"), SOURCE_UID: text(metadata, "uid")}
    document: Document = {**source, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": kept}
    owner = _pod_that_owns(source)
    if owner is not None:
        uid = _here(here, owner)
        kept["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": uid, "controller": True}
        ]
    if kind.kind == "Pod":
        document["spec"] = _pod_spec(part(source, "spec"), keeps_node=keeps_node)
        if not keeps_node:
            document.pop("status", None)
    elif kind.kind == "PersistentVolume":
        document["spec"] = _volume_spec(part(source, "spec"), here)
    elif kind.kind == "ResourceClaim":
        document["status"] = _claim_status(part(source, "status"), text(metadata, "namespace"), here)
    elif kind.kind == "Service":
        document["spec"] = {k: v for k, v in part(source, "spec").items() if k not in ("clusterIP", "clusterIPs")}
    if not kind.has_status:
        document.pop("status", None)
    return document


def _pod_that_owns(source: Document) -> ObjectRef | None:
    """Return the pod that controls a claim, or None."""
    metadata = part(source, "metadata")
    for owner in items(metadata, "ownerReferences"):
        if owner.get("kind") == "Pod" and owner.get("controller"):
            return ObjectRef("pods", text(metadata, "namespace"), text(owner, "name"))
    return None


def _here(here: Here, ref: ObjectRef) -> str:
    uid = here.uid_of(ref)
    if uid is None:
        raise Awaited(ref)
    return uid


def _pod_spec(spec: Document, *, keeps_node: bool) -> Document:
    left_out = {"serviceAccountName", "serviceAccount"}
    if not keeps_node:
        left_out.add("nodeName")
    if spec.get("priorityClassName"):
        left_out |= {"priority", "preemptionPolicy"}
    return {name: value for name, value in spec.items() if name not in left_out}


def _volume_spec(spec: Document, here: Here) -> Document:
    claim = part(spec, "claimRef")
    if not claim.get("uid"):
        return spec
    ref = ObjectRef("persistentvolumeclaims", text(claim, "namespace"), text(claim, "name"))
    kept = {name: value for name, value in claim.items() if name != "resourceVersion"}
    return {**spec, "claimRef": {**kept, "uid": _here(here, ref)}}


def _claim_status(status: Document, namespace: str, here: Here) -> Document:
    """Return a claim's allocation for those of its users that keep their nodes; without any, the claim is free."""
    users: list[Document] = []
    for user in items(status, "reservedFor"):
        ref = ObjectRef("pods", namespace, text(user, "name"))
        if user.get("resource") == "pods" and here.keeps_node(ref):
            users.append({**user, "uid": _here(here, ref)})
    return cast("Document", {**status, "reservedFor": users}) if users else {}
