"""VolumeRestrictions: limits sharing of disks between pods on a node, and of ReadWriteOncePod claims between all pods.

Pods on a node can't share a disk if one of them writes to it. Source:
https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes, and KEP-2485 (ReadWriteOncePod).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import PROCEED, FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import ERROR_BIT, SKIP, Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.objects.volumes import Volume
from bayplan.plugins.pod_claims import (
    PodVolumes,
    claim_not_found,
    is_disk,
    is_schedulable_after_named_claim_change,
    named_claims,
    pod_volumes,
)
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.state.volume_use import VolumeUse

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
DISK_CONFLICT = 1
CLAIM_IN_USE = 2
STATE_MISSING = 0x2000 | ERROR_BIT
REASONS = {
    DISK_CONFLICT: "node(s) had no available disk",
    CLAIM_IN_USE: (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
    ),
    STATE_MISSING: 'cannot read "PreFilterVolumeRestrictions" from cycleState',
}


class ClaimConflicts(NamedTuple):
    """The params of a pod with exclusive claims: claims with the access mode ReadWriteOncePod.

    Attributes:
        in_use: the number of these claims that other pods use.
        users: the number of volumes with these claims when PreFilter ran.
        names: the names of the claims.
    """

    in_use: int
    users: int
    names: tuple[str, ...]


class VolumeRestrictions(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes where a pod uses one of the pod's disks, and all nodes while another pod uses its exclusive claim.

    Params: `ClaimConflicts`, or () for pods without exclusive claims.

    Attributes:
        use: the pods with volumes.
    """

    name = "VolumeRestrictions"
    reads = Reads.USAGE
    pre_reads = Reads.OBJECTS
    compiles_requests = False
    texts = REASONS

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self.use = VolumeUse(handle.cluster)

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod)

    def pre_filter_reads(self, spec: PodVolumes) -> Reads:
        """Return NOTHING for pods without named claims: their params never change."""
        return Reads.OBJECTS if spec.has_named_claims else Reads.NOTHING

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Reject pods whose claim is missing; return SKIP for pods without disks whose exclusive claims are free."""
        has_disks = any(is_disk(volume.source) for volume in spec.volumes)
        if not spec.has_named_claims:
            return PROCEED if has_disks else SKIP
        exclusive: dict[str, None] = {}
        for volume in spec.volumes:
            if volume.claim is None or volume.ephemeral:
                continue
            claim = cluster.catalog.get(PersistentVolumeClaim, f"{spec.namespace}/{volume.claim}")
            if claim is None:
                return unresolvable(claim_not_found(volume.claim))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive[volume.claim] = None
        if not exclusive:
            return PROCEED if has_disks else SKIP
        self.use.refresh()
        conflicts = sum(f"{spec.namespace}/{name}" in self.use.claim_users for name in exclusive)
        if not has_disks and not conflicts:
            return SKIP
        names = tuple(sorted(exclusive))
        return PreFilterResult(ClaimConflicts(conflicts, self._users_of(names), names))

    def params_after_changes(self, spec: PodVolumes, params: Params | None, cluster: ClusterState) -> Params | None:
        """Return the params with conflicts counted again. As upstream, moved pods count in any namespace."""
        if not isinstance(params, ClaimConflicts):
            return params
        self.use.refresh()
        return params._replace(in_use=params.in_use + self._users_of(params.names) - params.users)

    def _users_of(self, names: Iterable[str]) -> int:
        return sum(self.use.name_users.get(name, 0) for name in names)

    def filter(self, spec: PodVolumes, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes that use one of the pod's disks, and all nodes while an exclusive claim is in use."""
        in_use = isinstance(params, ClaimConflicts) and params.in_use > 0
        verdict = STATE_MISSING if params is None else CLAIM_IN_USE if in_use else 0
        codes = np.full(len(rows), verdict, dtype=np.uint16)
        disks = [volume.source for volume in spec.volumes if is_disk(volume.source)]
        if not disks:
            return codes
        self.use.refresh()
        used = [found for disk in disks for found in self.use.rows_with(disk)]
        for place, row in enumerate(rows.row_numbers().tolist() if used else ()):
            if any(row in found for found in used):
                mounted = [volume for info in self.use.pods_on[row] for volume in info.pod.spec.volumes]
                if disks_conflict(disks, mounted):
                    codes[place] = DISK_CONFLICT
        return codes

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register deleted pods, added nodes, and added claims."""
        return (
            (ClusterEvent(EventResource.POD, ActionType.DELETE), self.is_schedulable_after_pod_deleted),
            (ClusterEvent(EventResource.NODE, ActionType.ADD), None),
            (
                ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD),
                is_schedulable_after_named_claim_change,
            ),
        )

    @hint(Pod, old=True)
    def is_schedulable_after_pod_deleted(self, pod: Pod, left: Pod, new: Pod | None) -> bool:
        """Queue the pod if the deleted pod is in its namespace and used one of its disks or claims."""
        if left.metadata.namespace != pod.metadata.namespace:
            return False
        disks = [volume for volume in pod.spec.volumes if is_disk(volume)]
        return disks_conflict(disks, left.spec.volumes) or bool(named_claims(pod) & named_claims(left))


def disks_conflict(disks: Sequence[Volume], mounted: Sequence[Volume]) -> bool:
    """Return whether two lists of volumes contain the same disk; a disk that both sides only read doesn't count."""
    return any(_same_disk(disk, other) for disk in disks for other in mounted)


def _same_disk(disk: Volume, other: Volume) -> bool:
    for field, name in (("gce_persistent_disk", "pd_name"), ("aws_elastic_block_store", "volume_id"), ("iscsi", "iqn")):
        mine, theirs = getattr(disk, field), getattr(other, field)
        if mine is None or theirs is None or getattr(mine, name) != getattr(theirs, name):
            continue
        # An EBS disk can't be shared, not even for reading.
        if field == "aws_elastic_block_store" or not (mine.read_only and theirs.read_only):
            return True
    rbd, other_rbd = disk.rbd, other.rbd
    if rbd is None or other_rbd is None or (rbd.read_only and other_rbd.read_only):
        return False
    same = (rbd.pool, rbd.image) == (other_rbd.pool, other_rbd.image)
    return same and not set(rbd.monitors).isdisjoint(other_rbd.monitors)
