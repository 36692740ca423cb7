"""Decides whether a claim is bound by the source, or by the local scheduler and controllers.

If a volume is created when its first consumer has a node, the location of the volume is a scheduling decision, like the
node itself. So these claims are bound locally, regardless of the source, unless they were bound when the sync began.
Otherwise their pods could only go to the nodes that the source's scheduler chose, depending on which cluster was
faster.

The decision for an object is permanent: it is stored as `Known.FREE`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.base.plain_data import Document, part, text
from bayplan.cluster.volume_controller import PROVISIONED_BY
from bayplan.controllers.persistent_volumes import BOUND_BY_SOURCE
from bayplan.plugins.pod_claims import BETA_STORAGE_CLASS, BOUND_BY_CONTROLLER, WAIT_FOR_FIRST_CONSUMER
from bayplan.sync.followed_kinds import ObjectRef
from bayplan.sync.known_objects import SourceObject
from bayplan.sync.memory import Known, Memory
from bayplan.sync.merging import OF_THE_BINDING
from bayplan.sync.policy import SyncPolicy

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"

_decode = msgspec.json.Decoder(dict[str, object]).decode


class VolumeDecisions:
    """Decides for claims and volumes of the source whether they are bound locally.

    Args:
        policy: the options of the sync.
        memory: the earlier decisions.
        source: the objects of the source.
    """

    def __init__(self, policy: SyncPolicy, memory: Memory, source: Mapping[ObjectRef, SourceObject]) -> None:
        self._policy = policy
        self._memory = memory
        self._source = source

    def is_bound_locally(self, ref: ObjectRef, uid: str) -> bool:
        """Return whether a claim or volume is bound locally.

        Args:
            ref: the reference of a claim or a volume.
            uid: its uid in the source; the result is False for an unknown object.
        """
        known = self._memory.get(uid)
        if known is not None:
            return known is Known.FREE
        source = self._source.get(ref)
        if source is None or source.uid != uid:
            return False
        document = _decode(source.raw)
        return self._of_claim(document) if ref.plural == CLAIMS else self._of_volume(document)

    def as_decided(self, ref: ObjectRef, uid: str, document: Document) -> Document | None:
        """Return an object of the source without decisions that are made locally; None if it is not copied, or not yet.

        Args:
            ref, uid: the reference and uid of the object.
            document: the source's object; returned unchanged unless it is a claim or a volume.
        """
        if ref.plural == CLAIMS:
            if self.is_bound_locally(ref, uid):
                return _unbound(document)
            if self._policy.source_volumes and self._waits(document) and not is_bound(document):
                return None
            return _bound_by_source(document) if self._policy.follow else document
        if ref.plural == VOLUMES and self.is_bound_locally(ref, uid):
            is_made_for_a_claim = PROVISIONED_BY in part(part(document, "metadata"), "annotations")
            return None if is_made_for_a_claim else _available(document)
        return document

    def _of_claim(self, claim: Document) -> bool:
        if is_bound(claim) and BOUND_BY_CONTROLLER not in part(part(claim, "metadata"), "annotations"):
            # The creator of the claim requested this volume.
            return False
        if not self._policy.follow and not is_bound(claim):
            return True
        return self._waits(claim) and not self._policy.source_volumes

    def _of_volume(self, volume: Document) -> bool:
        claim = part(part(volume, "spec"), "claimRef")
        if not text(claim, "uid"):
            return self._waits(volume)
        return self.is_bound_locally(
            ObjectRef(CLAIMS, text(claim, "namespace"), text(claim, "name")), text(claim, "uid")
        )

    def _waits(self, document: Document) -> bool:
        """Return whether the class of a claim or volume waits for its first consumer."""
        annotations = part(part(document, "metadata"), "annotations")
        name = text(annotations, BETA_STORAGE_CLASS) or text(part(document, "spec"), "storageClassName")
        found = self._source.get(ObjectRef("storageclasses", "", name)) if name else None
        return found is not None and _decode(found.raw).get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


def is_bound(claim: Document) -> bool:
    """Return whether a claim has a volume, or requests one by name."""
    return bool(part(claim, "spec").get("volumeName"))


def _unbound(claim: Document) -> Document:
    return _without(claim, "volumeName")


def _bound_by_source(claim: Document) -> Document:
    """Return a claim with the annotation that lets the local controllers ignore it."""
    metadata = part(claim, "metadata")
    annotations = {**part(metadata, "annotations"), BOUND_BY_SOURCE: "yes"}
    return {**claim, "metadata": {**metadata, "annotations": annotations}}


def _available(volume: Document) -> Document:
    """Return the unbound version of a volume. A volume that is reserved for a claim by name stays reserved."""
    claim = part(part(volume, "spec"), "claimRef")
    free = _without(volume, "claimRef")
    if claim and BOUND_BY_CONTROLLER not in part(part(volume, "metadata"), "annotations"):
        meant = {name: claim[name] for name in ("apiVersion", "kind", "namespace", "name") if name in claim}
        free["spec"] = {**part(free, "spec"), "claimRef": meant}
    return free


def _without(document: Document, field: str) -> Document:
    """Return a claim or volume without a field of its spec, its status, and the annotations of its binding."""
    metadata = part(document, "metadata")
    annotations = {k: v for k, v in part(metadata, "annotations").items() if k not in OF_THE_BINDING}
    spec = {name: value for name, value in part(document, "spec").items() if name != field}
    kept = {name: value for name, value in document.items() if name != "status"}
    return {**kept, "metadata": {**metadata, "annotations": annotations}, "spec": spec}
