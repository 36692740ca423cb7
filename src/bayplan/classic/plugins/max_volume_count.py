"""MaxEBSVolumeCount, MaxGCEPDVolumeCount, MaxAzureDiskVolumeCount, MaxCinderVolumeCount: limit a node's disks."""

from __future__ import annotations

from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.attached_volumes import NO_NAME, VOLUME_KINDS, UnnamedClaim, VolumeKind, limit_of, names_of
from bayplan.classic.plugins.failure_reasons import MAX_VOLUME_COUNT_EXCEEDED, verdict_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PROCEED, FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import ERROR_BIT, SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.plugins.pod_claims import PodVolumes, pod_volumes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.volume_use import VolumeUse

EXCEEDED = verdict_of(1, MAX_VOLUME_COUNT_EXCEEDED)
UNNAMED = 2 | ERROR_BIT


class AttachedDisks:
    """Counts the attached disks of a type on a node, and those that a pod would add."""

    def __init__(self, cluster: ClusterState, *, attach_volume_limit: bool) -> None:
        self._cluster = cluster
        self._use = VolumeUse(cluster)
        self._attach_volume_limit = attach_volume_limit

    def on_row(self, kind: VolumeKind, wanted: frozenset[str], row: int) -> tuple[int, int, int]:
        """Return the number of disks attached to a node, the number of disks in `wanted` that are not attached, and the limit.

        Raises:
            UnnamedClaim: a claim of a pod on the node has no name.
        """
        self._use.refresh()
        catalog = self._cluster.catalog
        attached: set[str] = set()
        for info in self._use.pods_on.get(row, ()):
            attached.update(names_of(kind, pod_volumes(info.pod), catalog))
        node = self._cluster.nodes.nodes[row]
        assert node is not None
        limit = limit_of(kind, node, attach_volume_limit=self._attach_volume_limit)
        return len(attached), len(wanted - attached), limit


class MaxVolumeCount(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Base of the predicates: rejects nodes that would exceed their limit for one type of disk.

    Class attributes:
        kind: the type of the disks.
    """

    reads = Reads.EVERYTHING
    pre_reads = Reads.NOTHING
    kind: VolumeKind

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        gates = classic_arguments(arguments).gates
        self._attached_disks = AttachedDisks(handle.cluster, attach_volume_limit=gates.attach_volume_limit)

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod)

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return SKIP for pods without volumes that could be of the type."""
        return PROCEED if spec.volumes else SKIP

    def filter_rule(self, spec: PodVolumes, cluster: ClusterState) -> FilterRule:
        """Return the rule that compares the number of disks with the node's limit."""
        return TooManyVolumes(self.kind, spec, self._attached_disks, cluster)

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason, or the error."""
        return (NO_NAME,) if verdict == UNNAMED else (MAX_VOLUME_COUNT_EXCEEDED,)


class TooManyVolumes(FilterRule):
    """Returns `EXCEEDED` if the node would exceed its limit, `UNNAMED` if a claim has no name."""

    def __init__(
        self, kind: VolumeKind, spec: PodVolumes, attached_disks: AttachedDisks, cluster: ClusterState
    ) -> None:
        super().__init__(cluster.columns)
        self._kind, self._spec, self._attached_disks, self._cluster = kind, spec, attached_disks, cluster
        self._wanted: frozenset[str] | None = frozenset()

    def refresh(self) -> bool:
        """Look up the names of the pod's disks, which depend on claims and classes."""
        try:
            self._wanted = frozenset(names_of(self._kind, self._spec, self._cluster.catalog))
        except UnnamedClaim:
            self._wanted = None
        return False

    def filter(self, row: int) -> int:
        """Compare the number of disks with the node's limit."""
        if self._wanted is None:
            return UNNAMED
        if not self._wanted or self._cluster.nodes.nodes[row] is None:
            return 0
        try:
            attached, missing, limit = self._attached_disks.on_row(self._kind, self._wanted, row)
        except UnnamedClaim:
            return UNNAMED
        return EXCEEDED if attached + missing > limit else 0


class MaxEBSVolumeCount(MaxVolumeCount):
    """Counts disks of AWS EBS."""

    name = "MaxEBSVolumeCount"
    kind = VOLUME_KINDS[name]


class MaxGCEPDVolumeCount(MaxVolumeCount):
    """Counts persistent disks of Google Compute Engine."""

    name = "MaxGCEPDVolumeCount"
    kind = VOLUME_KINDS[name]


class MaxAzureDiskVolumeCount(MaxVolumeCount):
    """Counts data disks of Azure."""

    name = "MaxAzureDiskVolumeCount"
    kind = VOLUME_KINDS[name]


class MaxCinderVolumeCount(MaxVolumeCount):
    """Counts volumes of OpenStack Cinder."""

    name = "MaxCinderVolumeCount"
    kind = VOLUME_KINDS[name]
