"""VolumeZone: a node that is in a zone or region must be in one of those of the pod's bound volumes.

Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, HintAnswer, QueueingHint, objects_of
from bayplan.framework.plugin import FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Code, Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Requirement
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from bayplan.plugins.pod_claims import (
    WAIT_FOR_FIRST_CONSUMER,
    PodVolumes,
    claim_not_found,
    class_of_claim,
    pod_volumes,
)
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
NEW_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION}
REASON = "node(s) had no available volume zone"
WRONG_ZONE = 1 | UNRESOLVABLE_BIT
FIRST_TEXT = 2
"""Verdicts from here on are statuses of PreFilter that the filter found itself, where PreFilter is disabled."""


class VolumeZone(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes outside of the zones and regions of bound volumes. Nodes that are in none at all pass.

    Params: per label of a volume the label and the values that it allows.
    """

    name = "VolumeZone"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS
    compiles_requests = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._statuses: dict[Status, int] = {}

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod)

    def pre_filter_reads(self, spec: PodVolumes) -> Reads:
        """Claims and volumes are looked at where the pod names claims."""
        return Reads.OBJECTS if spec.has_named_claims else Reads.NOTHING

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return the topology of the bound volumes as params; SKIP where they have none."""
        topologies = self._topologies(spec, cluster)
        if isinstance(topologies, Status):
            return topologies
        return PreFilterResult(topologies) if topologies else SKIP

    def _topologies(self, spec: PodVolumes, cluster: ClusterState) -> tuple[tuple[str, tuple[str, ...]], ...] | Status:
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
        """Return `WRONG_ZONE` for nodes with zone labels that a volume does not allow."""
        topologies = params
        if topologies is None:
            # Without PreFilter, upstream looks the volumes up for each node.
            answer = self._topologies(spec, rows.state)
            if isinstance(answer, Status):
                return rows.codes(rows.fill(self._verdict(answer)))
            topologies = answer
        labelled = rows.everywhere(False)
        for key in TOPOLOGY_LABELS:
            labelled = labelled | (rows.label(key) >= 0)
        wrong = rows.everywhere(False)
        for topology in topologies:
            assert isinstance(topology, tuple)
            key, values = topology
            allowed = rows.matches(Requirement(key, "In", values))
            newer = NEW_LABELS.get(key)
            if newer is not None:
                allowed = allowed | ((rows.label(key) < 0) & rows.matches(Requirement(newer, "In", values)))
            wrong = wrong | (allowed == False)  # noqa: E712 - elementwise, and "~" would not do for plain numbers.
        return rows.verdicts((labelled & wrong, WRONG_ZONE))

    def _verdict(self, status: Status) -> int:
        number = self._statuses.setdefault(status, len(self._statuses) + FIRST_TEXT)
        return number | (ERROR_BIT if status.code is Code.ERROR else UNRESOLVABLE_BIT)

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return that the zone is wrong, or what PreFilter would have said."""
        if verdict == WRONG_ZONE:
            return (REASON,)
        number = verdict & ~(ERROR_BIT | UNRESOLVABLE_BIT)
        return next(status.reasons for status, other in self._statuses.items() if other == number)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register classes that come, nodes that come or change labels, claims and volumes that come or change."""
        changes = ActionType.ADD | ActionType.UPDATE
        return (
            (
                ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD),
                self.is_schedulable_after_storage_class_added,
            ),
            (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), None),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changes),
                self.is_schedulable_after_persistent_volume_claim_change,
            ),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME, changes),
                self.is_schedulable_after_persistent_volume_change,
            ),
        )

    def is_schedulable_after_storage_class_added(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod where the class makes claims wait for their first consumer."""
        objects = objects_of(StorageClass, None, new)
        if objects is None or objects[1] is None:
            return HintAnswer.ERROR
        return HintAnswer(objects[1].volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)

    def is_schedulable_after_persistent_volume_claim_change(
        self, pod: Pod, old: object | None, new: object | None
    ) -> HintAnswer:
        """Queue the pod where the claim is one that it names."""
        objects = objects_of(PersistentVolumeClaim, old, new)
        if objects is None:
            return HintAnswer.ERROR
        claim = objects[1]
        if claim is None or claim.metadata.namespace != pod.metadata.namespace:
            return HintAnswer.SKIP
        names = [volume.persistent_volume_claim for volume in pod.spec.volumes]
        return HintAnswer(any(source is not None and source.claim_name == claim.metadata.name for source in names))

    def is_schedulable_after_persistent_volume_change(
        self, pod: Pod, old: object | None, new: object | None
    ) -> HintAnswer:
        """Queue the pod where a volume is new or its zones and regions changed."""
        objects = objects_of(PersistentVolume, old, new)
        if objects is None or objects[1] is None:
            return HintAnswer.ERROR
        before = objects[0]
        return HintAnswer(before is None or volume_topologies(before) != volume_topologies(objects[1]))


def volume_topologies(volume: PersistentVolume) -> list[tuple[str, tuple[str, ...]]]:
    """Return per zone or region label of a volume its key and values; labels with an empty part are ignored."""
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
    """Return why a claim without volume keeps its pod waiting, or None where it waits for the pod itself."""
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
