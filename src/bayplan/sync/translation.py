"""Translation of a source's object into the local object: without fields of the source cluster, with local uids.

- uid, resourceVersion, times, managed fields and finalizers are dropped: the controllers that act on them are in the
  source.
- Of its owners, a pod keeps its ReplicaSet, ReplicationController or StatefulSet, because default spreading finds its
  selector by that name. The reference has the uid of the source, and copies of these workloads have 0 replicas, so
  local controllers neither collect, duplicate nor delete pods. Other owners are dropped, except that a claim that a pod
  owns is owned by the copy of the pod, because the scheduler checks the owner of a claim.
- A pod's service account and the volumes with its token are dropped; its priority is computed from its class again.
- A persistent volume's claimRef has the local uid of its claim, so bound volumes stay bound. A released volume keeps
  the source's uid of its claim, so it is not bound to a later claim of that name.
- A resource claim keeps the source's allocation only for pods that keep their nodes; the local scheduler allocates the
  other claims.
"""

from __future__ import annotations

from typing import Protocol, cast

from bayplan.base.plain_data import Document, items, part, text
from bayplan.cluster.run_time import run_forever
from bayplan.cluster.source_copies import SOURCE_UID
from bayplan.controllers.resource_claims import DELETE_PROTECTION
from bayplan.sync.followed_kinds import SPREAD_OWNERS, FollowedKind, ObjectRef
from bayplan.sync.policy import SOURCE_APPLIED


class LocalObjects(Protocol):
    """The interface to the local objects that translation needs."""

    def uid_of(self, ref: ObjectRef, source_uid: str) -> str | None:
        """Return the local uid of an object's copy, or None while it does not exist.

        Args:
            ref: the object's name.
            source_uid: the uid in the source, so that a copy of a different object with this name does not count; "" accepts any.
        """
        ...

    def keeps_node(self, source_uid: str) -> bool:
        """Return whether a pod of the source keeps the node that it had when the sync began."""
        ...


_RELEASED = ("Released", "Failed")
"""Phases of volumes whose claims are deleted."""

_TOKEN_VOLUME = "kube-api-access-"

_CLAIMS = ("PersistentVolumeClaim", "ResourceClaim")
"""Kinds whose owners the scheduler checks: VolumeBinding and DynamicResources refuse a generated claim of another pod."""

_COPIED_METADATA = ("name", "generateName", "namespace", "labels", "annotations")


class MissingDependency(Exception):
    """Raised if an object cannot be written before another object exists.

    Args:
        ref: the other object.
    """

    def __init__(self, ref: ObjectRef) -> None:
        self.ref = ref
        super().__init__(f"waits for {ref}")


def translate(kind: FollowedKind, source: Document, here: LocalObjects, *, keeps_node: bool = False) -> Document:
    """Return a new document to create, with its status.

    Args:
        kind: the kind of the object.
        source: the source's object; it is not modified.
        here: the local objects.
        keeps_node: whether a pod keeps its node.

    Raises:
        MissingDependency: the object refers to another object that does not exist locally yet.
    """
    metadata = part(source, "metadata")
    kept: Document = {name: metadata[name] for name in _COPIED_METADATA if metadata.get(name)}
    # A source that itself syncs another cluster has this annotation, too.
    annotations = {name: each for name, each in part(metadata, "annotations").items() if name != SOURCE_APPLIED}
    kept["annotations"] = {**annotations, SOURCE_UID: text(metadata, "uid")}
    document: Document = {**source, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": kept}
    owner = _pod_that_owns(source) if kind.kind in _CLAIMS else None
    if owner is not None:
        name = text(owner, "name")
        uid = _here(here, ObjectRef("pods", text(metadata, "namespace"), name), text(owner, "uid"))
        kept["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}]
    if kind.kind == "Pod":
        document["spec"] = _pod_spec(part(source, "spec"), keeps_node=keeps_node)
        owners = _spread_owners(source)
        if owners:
            kept["ownerReferences"] = owners
        # The copy ends when the original ends in the source.
        run_forever(document)
        if not keeps_node:
            document.pop("status", None)
        elif "status" in source:
            document["status"] = _status_on_a_node(part(source, "status"))
    elif kind.kind == "PersistentVolume":
        released = part(source, "status").get("phase") in _RELEASED
        document["spec"] = part(source, "spec") if released else _volume_spec(part(source, "spec"), here)
    elif kind.kind == "ResourceClaim":
        document.pop("status", None)
        status = _claim_status(part(source, "status"), text(metadata, "namespace"), here)
        document.update(status)
        if status:
            # Controllers release devices only of claims with this finalizer, which the scheduler sets together with the
            # allocation.
            kept["finalizers"] = [DELETE_PROTECTION]
    elif (kind.api_version, kind.kind) in SPREAD_OWNERS:
        document["spec"] = workload_spec(part(source, "spec"))
    elif kind.kind == "Service":
        document["spec"] = {k: v for k, v in part(source, "spec").items() if k not in ("clusterIP", "clusterIPs")}
    if not kind.has_status:
        document.pop("status", None)
    return document


def workload_spec(spec: Document) -> Document:
    """Return the copied part of a workload's spec: its selector, its template, and 0 replicas."""
    copied: Document = {name: spec[name] for name in ("selector", "serviceName") if name in spec}
    template = part(spec, "template")
    if template:
        pod_spec = _pod_spec(part(template, "spec"), keeps_node=True)
        copied["template"] = {**template, "spec": pod_spec}
    return {**copied, "replicas": 0}


def _spread_owners(source: Document) -> list[Document]:
    """Return a reference to the pod's controller if default spreading uses its selector, else an empty list."""
    for owner in items(part(source, "metadata"), "ownerReferences"):
        if owner.get("controller"):
            version, kind, uid = (text(owner, name) for name in ("apiVersion", "kind", "uid"))
            if (version, kind) not in SPREAD_OWNERS or not uid:
                break
            return [{"apiVersion": version, "kind": kind, "name": text(owner, "name"), "uid": uid, "controller": True}]
    return []


def _pod_that_owns(source: Document) -> Document | None:
    """Return the reference to the pod that controls a claim, or None."""
    for owner in items(part(source, "metadata"), "ownerReferences"):
        if owner.get("kind") == "Pod" and owner.get("controller"):
            return owner
    return None


def _here(here: LocalObjects, ref: ObjectRef, source_uid: str) -> str:
    uid = here.uid_of(ref, source_uid)
    if uid is None:
        raise MissingDependency(ref)
    return uid


def _pod_spec(spec: Document, *, keeps_node: bool) -> Document:
    left_out = {"serviceAccountName", "serviceAccount"}
    if not keeps_node:
        left_out.add("nodeName")
    if spec.get("priorityClassName"):
        left_out |= {"priority", "preemptionPolicy"}
    return without_tokens({name: value for name, value in spec.items() if name not in left_out})


def _status_on_a_node(status: Document) -> Document:
    """Return the status of a bound pod without its nomination.

    Releases up to 1.34 leave the nomination in the status, and it can't be written for a bound pod.
    """
    return {name: value for name, value in status.items() if name != "nominatedNodeName"}


def without_tokens(spec: Document) -> Document:
    """Return a spec without the service account volumes that the source's admission added, and their mounts.

    Scheduling does not read them, and their names differ from pod to pod: without them, the pods of a workload have equal specs.
    """
    volumes = items(spec, "volumes")
    gone = {text(volume, "name") for volume in volumes if _holds_token(volume)}
    if not gone:
        return spec
    spec = {**spec, "volumes": [volume for volume in volumes if text(volume, "name") not in gone]}
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        if kind in spec:
            spec[kind] = [_without_mounts(container, gone) for container in items(spec, kind)]
    return spec


def _holds_token(volume: Document) -> bool:
    sources = items(part(volume, "projected"), "sources")
    return text(volume, "name").startswith(_TOKEN_VOLUME) and any("serviceAccountToken" in each for each in sources)


def _without_mounts(container: Document, volumes: set[str]) -> Document:
    mounts = [each for each in items(container, "volumeMounts") if text(each, "name") not in volumes]
    return {**container, "volumeMounts": mounts}


def _volume_spec(spec: Document, here: LocalObjects) -> Document:
    claim = part(spec, "claimRef")
    if not claim.get("uid"):
        return spec
    ref = ObjectRef("persistentvolumeclaims", text(claim, "namespace"), text(claim, "name"))
    kept = {name: value for name, value in claim.items() if name != "resourceVersion"}
    return {**spec, "claimRef": {**kept, "uid": _here(here, ref, text(claim, "uid"))}}


def _claim_status(status: Document, namespace: str, here: LocalObjects) -> Document:
    """Return ``{"status": ...}`` of a claim with only the users that keep their nodes, or {} without such users."""
    users: list[Document] = []
    for user in items(status, "reservedFor"):
        uid = text(user, "uid")
        if user.get("resource") == "pods" and here.keeps_node(uid):
            users.append({**user, "uid": _here(here, ObjectRef("pods", namespace, text(user, "name")), uid)})
    return cast("Document", {"status": {**status, "reservedFor": users}}) if users else {}


class Dependents:
    """For each object whose local uid is used, the objects that use it."""

    def __init__(self) -> None:
        self._users: dict[ObjectRef, dict[ObjectRef, None]] = {}

    def recording(self, user: ObjectRef, here: LocalObjects) -> LocalObjects:
        """Return an object with the interface of `here` that records every queried uid as a dependency of `user`."""
        return _DependencyRecorder(self._users, user, here)

    def pop(self, ref: ObjectRef) -> list[ObjectRef]:
        """Remove and return the dependents of an object whose uid has changed; reconciling them records them again."""
        return list(self._users.pop(ref, ()))


class _DependencyRecorder:
    """Answers queries of the local objects and records them as dependencies; a `LocalObjects`.

    Args:
        users: receives the dependents of each queried object.
        user: the translated object.
        here: the local objects.
    """

    def __init__(self, users: dict[ObjectRef, dict[ObjectRef, None]], user: ObjectRef, here: LocalObjects) -> None:
        self._users = users
        self._user = user
        self._here = here

    def uid_of(self, ref: ObjectRef, source_uid: str) -> str | None:
        """Record and answer a query; see `LocalObjects.uid_of`."""
        self._users.setdefault(ref, {})[self._user] = None
        return self._here.uid_of(ref, source_uid)

    def keeps_node(self, source_uid: str) -> bool:
        """Answer a query; see `LocalObjects.keeps_node`."""
        return self._here.keeps_node(source_uid)
