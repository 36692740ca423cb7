"""NoDiskConflict: pods of one node must not mount the same disk at odds."""

from __future__ import annotations

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PROCEED, FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.failure_reasons import DISK_CONFLICT, verdict_of
from bayplan.plugins.pod_claims import PodVolumes, is_disk, pod_volumes
from bayplan.plugins.volume_restrictions import disks_conflict
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.state.volume_use import VolumeUse

CONFLICT = verdict_of(1, DISK_CONFLICT)


class NoDiskConflict(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes where a disk of the pod is in use in a way that excludes it."""

    name = "NoDiskConflict"
    reads = Reads.EVERYTHING
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._use = VolumeUse(handle.cluster)

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod)

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """SKIP where the pod has no disk."""
        return PROCEED if any(is_disk(volume.source) for volume in spec.volumes) else SKIP

    def filter(self, spec: PodVolumes, params: Params | None, rows: Rows) -> Codes:
        """Return `CONFLICT` where a disk is in use."""
        verdicts = np.zeros(len(rows), dtype=np.uint16)
        disks = [volume.source for volume in spec.volumes if is_disk(volume.source)]
        self._use.follow()
        for place, row in enumerate(rows.row_numbers().tolist()):
            infos = self._use.pods_on.get(row, ())
            if any(disks_conflict(disks, info.pod.spec.volumes) for info in infos):
                verdicts[place] = CONFLICT
        return verdicts

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason."""
        return (DISK_CONFLICT,)
