"""The volumes and claims that Reserve assumes for a pod, and their updates."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from bayplan.objects.meta import ObjectReference
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.pod_claims import BOUND_BY_CONTROLLER, SELECTED_NODE
from bayplan.plugins.volume_binding.matching import is_bound_to


class Reservation(msgspec.Struct, frozen=True):
    """The volumes and claims to write.

    Attributes:
        volumes: per binding the claim's key and the volume that is meant for it now.
        claims: claims that ask for a volume to be made on the node.
    """

    volumes: tuple[tuple[str, PersistentVolume], ...]
    claims: tuple[PersistentVolumeClaim, ...]


def volume_for_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return a volume that is meant for a claim: the very one where it was already."""
    metadata, reference = claim.metadata, volume.spec.claim_ref
    bound = is_bound_to(volume, claim)
    if reference is None or not bound or reference.uid != metadata.uid:
        wanted = ObjectReference(
            api_version="v1",
            kind="PersistentVolumeClaim",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
        )
        volume = replace(volume, spec=replace(volume.spec, claim_ref=wanted))
    if not bound and BOUND_BY_CONTROLLER not in volume.metadata.annotations:
        annotations = {**volume.metadata.annotations, BOUND_BY_CONTROLLER: "yes"}
        volume = replace(volume, metadata=replace(volume.metadata, annotations=annotations))
    return volume


def claim_for_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return a claim that asks for its volume to be made where a node can reach it."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))
