"""NoDiskConflict: pods on a node can't share a disk if one of them writes to it."""

from __future__ import annotations

from bayplan.classic.plugins.failure_reasons import DISK_CONFLICT, verdict_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PROCEED, FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.plugins.pod_claims import PodVolumes, is_disk, pod_volumes
from bayplan.plugins.volume_restrictions import disks_conflict
from bayplan.state.cluster_state import ClusterState
from bayplan.state.volume_use import VolumeUse

CONFLICT = verdict_of(1, DISK_CONFLICT)


class NoDiskConflict(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes on which another pod's use of a disk conflicts with the pod's use."""

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
        """Return SKIP for pods without disks."""
        return PROCEED if any(is_disk(volume.source) for volume in spec.volumes) else SKIP

    def filter_rule(self, spec: PodVolumes, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the disks on a node."""
        return DiskInUse(spec, self._use, cluster)

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (DISK_CONFLICT,)


class DiskInUse(FilterRule):
    """Returns `CONFLICT` for nodes on which the use of a disk conflicts."""

    def __init__(self, spec: PodVolumes, use: VolumeUse, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._disks = [volume.source for volume in spec.volumes if is_disk(volume.source)]
        self._use = use

    def refresh(self) -> bool:
        """Process added and removed pods."""
        self._use.refresh()
        return False

    def filter(self, row: int) -> int:
        """Compare the pod's disks with those of the pods on the node."""
        infos = self._use.pods_on.get(row, ())
        return CONFLICT if any(disks_conflict(self._disks, info.pod.spec.volumes) for info in infos) else 0
