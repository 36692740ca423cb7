"""NoVolumeZoneConflict: a node with zone or region labels must be in a zone or region of the pod's bound volumes."""

from __future__ import annotations

from bayplan.classic.plugins.attached_volumes import NO_NAME
from bayplan.classic.plugins.failure_reasons import VOLUME_ZONE_CONFLICT, verdict_of
from bayplan.classic.plugins.node_conditions import NodeVerdict
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PROCEED, FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import ERROR_BIT, SKIP, Status
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.csi_migration import BETA_REGION, BETA_ZONE
from bayplan.plugins.pod_claims import WAIT_FOR_FIRST_CONSUMER, PodVolumes, claim_not_found, class_of_claim, pod_volumes
from bayplan.plugins.volume_zone import volume_topologies
from bayplan.state.cluster_state import ClusterState
from bayplan.state.object_catalog import ObjectCatalog

WRONG_ZONE = verdict_of(1, VOLUME_ZONE_CONFLICT)
FIRST_ERROR = 2


class NoVolumeZoneConflict(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes outside the zones and regions of bound volumes. Nodes without these labels pass in any case."""

    name = "NoVolumeZoneConflict"
    reads = Reads.EVERYTHING
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._errors: list[str] = []

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod)

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return SKIP for pods without claims."""
        return PROCEED if spec.has_named_claims else SKIP

    def filter_rule(self, spec: PodVolumes, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks a node's zone and region labels."""
        return NodeVerdict(lambda node: self._verdict(spec, node, cluster.catalog), cluster)

    def _verdict(self, spec: PodVolumes, node: Node, catalog: ObjectCatalog) -> int:
        if BETA_ZONE not in node.metadata.labels and BETA_REGION not in node.metadata.labels:
            return 0
        for volume in spec.volumes:
            if volume.claim is None or volume.ephemeral:
                continue
            found = _bound_volume(spec.namespace, volume.claim, catalog)
            if isinstance(found, str):
                return self._error(found)
            if found is not None and not _holds(found, node):
                return WRONG_ZONE
        return 0

    def _error(self, text: str) -> int:
        if text not in self._errors:
            self._errors.append(text)
        return FIRST_ERROR + self._errors.index(text) | ERROR_BIT

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason, or the error."""
        if verdict & ERROR_BIT:
            return (self._errors[(verdict & ~ERROR_BIT) - FIRST_ERROR],)
        return (VOLUME_ZONE_CONFLICT,)


def _bound_volume(namespace: str, name: str, catalog: ObjectCatalog) -> PersistentVolume | str | None:
    """Return the volume of a claim; None if the claim waits for its first consumer.

    Return upstream's error text if the claim or its volume is missing.
    """
    if not name:
        return NO_NAME
    claim = catalog.get(PersistentVolumeClaim, f"{namespace}/{name}")
    if claim is None:
        return claim_not_found(name)
    if claim.spec.volume_name:
        volume = catalog.get(PersistentVolume, claim.spec.volume_name)
        return volume if volume is not None else f'persistentvolume "{claim.spec.volume_name}" not found'
    class_name = class_of_claim(claim)
    storage_class = catalog.get(StorageClass, class_name) if class_name else None
    if storage_class is not None:
        if storage_class.volume_binding_mode is None:
            return f'VolumeBindingMode not set for StorageClass "{class_name}"'
        if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
            return None
    return f'PersistentVolumeClaim was not found: "{name}"'


def _holds(volume: PersistentVolume, node: Node) -> bool:
    """Return whether a node is in the zone and region of a volume's labels."""
    labels = node.metadata.labels
    return all(
        labels.get(key, "") in values for key, values in volume_topologies(volume) if key in (BETA_ZONE, BETA_REGION)
    )
