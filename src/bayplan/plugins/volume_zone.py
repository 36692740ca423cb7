"""VolumeZone: a node that has zone or region labels must be in a zone or region of the pod's bound volumes.

Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import SKIP, UNRESOLVABLE_BIT, Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Requirement
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from bayplan.plugins.pod_claims import (
    WAIT_FOR_FIRST_CONSUMER,
    PodVolumes,
    claim_not_found,
    class_of_claim,
    is_schedulable_after_named_claim_change,
    pod_volumes,
)
from bayplan.plugins.verdict_texts import VerdictTexts
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matcher import meets
from bayplan.state.views import Rows

TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
NEW_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION}
REASON = "node(s) had no available volume zone"
WRONG_ZONE = 1 | UNRESOLVABLE_BIT
Topologies: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Key and allowed values of each zone or region label of a bound volume."""


class VolumeZone(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes outside of the zones and regions of bound volumes. Nodes without zone and region labels pass.

    Params: `Topologies`.
    """

    name = "VolumeZone"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS
    compiles_requests = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        # The rejections of PreFilter, which the filter finds itself if PreFilter is disabled.
        self.messages = VerdictTexts()
        # Whether the profile runs PreFilter; then verdicts depend only on the params.
        self._pre_filters = False

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod, shared=self._pre_filters)

    def pre_filter_reads(self, spec: PodVolumes) -> Reads:
        """Return NOTHING for pods without named claims, which PreFilter skips."""
        return Reads.OBJECTS if spec.has_named_claims else Reads.NOTHING

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return SKIP if the bound volumes have no zone and region labels."""
        self._pre_filters = True
        topologies = self.topologies(spec, cluster)
        if isinstance(topologies, Status):
            return topologies
        return PreFilterResult(topologies) if topologies else SKIP

    def topologies(self, spec: PodVolumes, cluster: ClusterState) -> Topologies | Status:
        """Return the topologies of the bound volumes, or why the pod is rejected."""
        catalog = cluster.catalog
        found: list[tuple[str, tuple[str, ...]]] = []
        for volume in spec.volumes:
            if volume.claim is None or volume.ephemeral:
                continue
            if not volume.claim:
                return unresolvable("PersistentVolumeClaim had no name")
            claim = catalog.get(PersistentVolumeClaim, f"{spec.namespace}/{volume.claim}")
            if claim is None:
                return unresolvable(claim_not_found(volume.claim))
            name = claim.spec.volume_name
            if not name:
                status = _status_of_unbound(claim, cluster)
                if status is not None:
                    return status
                continue
            bound = catalog.get(PersistentVolume, name)
            if bound is None:
                return unresolvable(f'persistentvolume "{name}" not found')
            found += volume_topologies(bound)
        return tuple(found)

    def filter(self, spec: PodVolumes, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes with zone or region labels that lack an allowed value for some label of some volume.

        Without PreFilter, find the volumes, as upstream does for each node.
        """
        topologies = self.topologies(spec, rows.state) if params is None else cast("Topologies", params)
        if isinstance(topologies, Status):
            verdict = self.messages.verdict(topologies.message, UNRESOLVABLE_BIT)
            return np.full(len(rows), verdict, dtype=np.uint16)
        labelled, allowed = rows.everywhere(False), rows.everywhere(True)
        for key in TOPOLOGY_LABELS:
            labelled |= rows.label(key) >= 0
        for key, values in topologies:
            here = meets(Requirement(key, "In", values), rows)
            if key in NEW_LABELS:
                # The newer name counts if the node lacks the older one.
                here = here | (rows.label(key) < 0) & meets(Requirement(NEW_LABELS[key], "In", values), rows)
            allowed &= here
        return rows.verdicts((labelled & ~allowed, WRONG_ZONE))

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reason for a verdict."""
        return (REASON if verdict == WRONG_ZONE else self.messages.text(verdict),)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register storage classes added, nodes added or relabelled, and claims and volumes added or changed."""
        changes = ActionType.ADD | ActionType.UPDATE
        return (
            (
                ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD),
                self.is_schedulable_after_storage_class_added,
            ),
            (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), None),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changes),
                is_schedulable_after_named_claim_change,
            ),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME, changes),
                self.is_schedulable_after_persistent_volume_change,
            ),
        )

    @hint(StorageClass, new=True)
    def is_schedulable_after_storage_class_added(self, pod: Pod, old: StorageClass | None, new: StorageClass) -> bool:
        """Queue the pod if claims of the added class wait for their first consumer."""
        return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    @hint(PersistentVolume, new=True)
    def is_schedulable_after_persistent_volume_change(
        self, pod: Pod, old: PersistentVolume | None, new: PersistentVolume
    ) -> bool:
        """Queue the pod if a volume was added, or its zones or regions changed."""
        return old is None or volume_topologies(old) != volume_topologies(new)


def volume_topologies(volume: PersistentVolume) -> list[tuple[str, tuple[str, ...]]]:
    """Return key and values of each zone or region label of a volume; labels with an empty part are ignored."""
    found = []
    for key in TOPOLOGY_LABELS:
        text = volume.metadata.labels.get(key)
        if text is None:
            continue
        values = {part.strip() for part in text.split(ZONE_DELIMITER)}
        if "" not in values:
            found.append((key, tuple(sorted(values))))
    return found


def _status_of_unbound(claim: PersistentVolumeClaim, cluster: ClusterState) -> Status | None:
    """Return why a claim without a volume rejects the pod, or None if the claim waits for its first consumer."""
    name = class_of_claim(claim)
    if not name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = cluster.catalog.get(StorageClass, name)
    if storage_class is None:
        return unresolvable(f'storageclass.storage.k8s.io "{name}" not found')
    if storage_class.volume_binding_mode is None:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return None
    return unresolvable("PersistentVolume had no name")
