"""The plugin NodeVolumeLimits: PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.plugin import FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status
from bayplan.objects.pod import Pod
from bayplan.objects.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.plugins.csi_migration import is_migratable
from bayplan.plugins.node_volume_limits.attached_volumes import AttachedVolumes
from bayplan.plugins.node_volume_limits.csi_names import CsiNames, csi_names
from bayplan.plugins.node_volume_limits.hints import LimitHints
from bayplan.plugins.pod_claims import PodVolumes, owner_of_ephemeral, pod_volumes
from bayplan.state.arrays import Bools, Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

EXCEEDED = 1
FIRST_TEXT = 2
LAST_TEXT = 0x3FFF
REASON_EXCEEDED = "node(s) exceed max volume count"
KINDS = (CSINode, VolumeAttachment, PersistentVolume, PersistentVolumeClaim, StorageClass, CSIDriver)
"""What the verdicts of a pod with volumes depend on, beside nodes and pods."""


class NodeVolumeLimits(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes that would have to attach more volumes of a driver than they can.

    Params: how the pod's volumes are named on nodes without CSINode and on those with one, and, where any node could
    reject them, the versions of all objects that are read.
    """

    name = "NodeVolumeLimits"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    compiles_requests = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._needs_driver = handle.feature_gates.enabled("VolumeLimitScaling")
        self._attached = AttachedVolumes(handle.cluster)
        self._hints = LimitHints()
        self._texts: dict[str, int] = {}

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return whose the claims of ephemeral volumes must be."""
        return owner_of_ephemeral(pod)

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod)

    def pre_filter_reads(self, spec: PodVolumes) -> Reads:
        """Pods without claims and migratable volumes are skipped whatever the cluster holds."""
        return Reads.OBJECTS if _may_count(spec) else Reads.NOTHING

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """SKIP pods without claims and migratable volumes."""
        return PreFilterResult(self._examine(spec, cluster)) if _may_count(spec) else SKIP

    def _examine(self, spec: PodVolumes, cluster: ClusterState) -> Params:
        catalog = cluster.catalog
        plain = csi_names(spec, catalog, migrated=False, new_pod=True)
        migrated = csi_names(spec, catalog, migrated=True, new_pod=True)
        if not (plain.drivers or plain.error or migrated.drivers or migrated.error):
            return ()
        return (_key(plain), _key(migrated), *(catalog.version(kind) for kind in KINDS))

    def filter(self, spec: PodVolumes, params: Params | None, rows: Rows) -> Codes:
        """Return `EXCEEDED`, or the number of a text: what is wrong with the volumes, or which driver is missing."""
        if params is None:
            params = self._examine(spec, rows.state)
        if not params:
            return np.zeros(len(rows), dtype=np.uint16)
        catalog = rows.state.catalog
        self._attached.follow()
        index = rows.row_numbers()
        has_csi_node = self._attached.has_csi_node[index]
        verdicts = np.zeros(len(index), dtype=np.uint16)
        for migrated in (False, True):
            names = csi_names(spec, catalog, migrated=migrated, new_pod=True)
            concerned = has_csi_node == migrated
            if names.error:
                verdicts[concerned] = self._verdict(names.error, names.flags)
                continue
            if not names.drivers:
                continue
            if migrated:
                self._check_limits(names, rows, concerned, verdicts)
            if self._needs_driver:
                self._check_drivers(names, rows, concerned, verdicts)
        return verdicts

    def _check_limits(self, names: CsiNames, rows: Rows, concerned: Bools, verdicts: Codes) -> None:
        """Compare what is attached and what would come with the limits; pods that can't be told from others are errors."""
        attached, index = self._attached, rows.row_numbers()
        for driver in dict.fromkeys(names.drivers.values()):
            limits, counts = attached.limits.get(driver), attached.counts.get(driver)
            if limits is None:
                continue
            wanted = np.zeros(rows.state.nodes.capacity, dtype=np.int64)
            for name, other in names.drivers.items():
                if other == driver:
                    # A volume that a pod of the node uses already is not attached a second time.
                    wanted += 1
                    wanted[list(attached.rows_of.get(name, ()))] -= 1
            total = wanted if counts is None else wanted + counts
            exceeded = (wanted > 0) & (total > limits)
            verdicts[concerned & exceeded[index]] = EXCEEDED
        for row, text in attached.errors.items():
            if attached.limited[row]:
                verdicts[concerned & (index == row)] = self._verdict(text, ERROR_BIT)

    def _check_drivers(self, names: CsiNames, rows: Rows, concerned: Bools, verdicts: Codes) -> None:
        """Reject nodes without a driver that says that its pods must not go there."""
        catalog = rows.state.catalog
        wanted = []
        for driver in sorted(set(names.drivers.values())):
            described = catalog.get(CSIDriver, driver)
            if described is not None and described.spec.prevent_pod_scheduling_if_missing:
                wanted.append(driver)
        if not wanted:
            return
        for place in np.flatnonzero(concerned).tolist():
            installed = self._attached.drivers_of(int(rows.row_numbers()[place]))
            missing = next((driver for driver in wanted if driver not in installed), None)
            if missing is not None:
                verdicts[place] = self._verdict(f"{missing} CSI driver is not installed on the node", 0)

    def _verdict(self, text: str, flags: int) -> int:
        return min(self._texts.setdefault(text, len(self._texts) + FIRST_TEXT), LAST_TEXT) | flags

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reason."""
        number = verdict & ~(ERROR_BIT | UNRESOLVABLE_BIT)
        if number == EXCEEDED:
            return (REASON_EXCEEDED,)
        return (next(text for text, other in self._texts.items() if min(other, LAST_TEXT) == number),)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register CSINodes that come or raise limits, pods that leave, claims that come, attachments that end."""
        hints = self._hints
        return (
            (ClusterEvent(EventResource.CSI_NODE, ActionType.ADD), None),
            (ClusterEvent(EventResource.CSI_NODE, ActionType.UPDATE), hints.is_schedulable_after_csi_node_updated),
            (ClusterEvent(EventResource.POD, ActionType.DELETE), hints.is_schedulable_after_pod_deleted),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
                hints.is_schedulable_after_pvc_added,
            ),
            (
                ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE),
                hints.is_schedulable_after_volume_attachment_deleted,
            ),
        )


def _may_count(spec: PodVolumes) -> bool:
    return spec.has_claims or any(is_migratable(volume.source) for volume in spec.volumes)


def _key(names: CsiNames) -> tuple[object, ...]:
    return tuple(names.drivers.items()), names.error
