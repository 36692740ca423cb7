"""BalancedResourceAllocation with the gate BalanceAttachedNodeVolumes: attachable disks are a third resource."""

from __future__ import annotations

from bayplan.classic.plugins.attached_volumes import VOLUME_KINDS, UnnamedClaim, names_of
from bayplan.classic.plugins.max_volume_count import AttachedDisks
from bayplan.classic.plugins.priority import MAX_PRIORITY
from bayplan.classic.plugins.resource_allocation import AllocationSpec, Balance, BalancedResourceAllocation
from bayplan.framework.plugin import Handle, Reads
from bayplan.framework.rule import ScoreRule
from bayplan.objects.pod import Pod
from bayplan.plugins.pod_claims import NO_VOLUMES, PodVolumes, pod_volumes
from bayplan.state.cluster_state import ClusterState


class AllocationAndVolumes(AllocationSpec, frozen=True):
    """The requests and the volumes of a pod."""

    volumes: PodVolumes = NO_VOLUMES


class BalancedVolumes(BalancedResourceAllocation):
    """Scores nodes by the variance of the used fractions of CPU, memory and attachable disks; less is better.

    Disks count if a configured predicate counts the pod's type of disks; if several do, the last of these types counts.
    """

    name = "BalancedResourceAllocation"
    reads = Reads.EVERYTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._attached_disks = AttachedDisks(
            handle.cluster, attach_volume_limit=self._arguments.gates.attach_volume_limit
        )

    def compile(self, pod: Pod, cluster: ClusterState) -> AllocationAndVolumes:
        """Return the requests and the volumes of the pod."""
        return AllocationAndVolumes(super().compile(pod, cluster).key, pod_volumes(pod))

    def score_rule(self, spec: AllocationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule for CPU, memory and disks; for pods without volumes, that for CPU and memory."""
        if not isinstance(spec, AllocationAndVolumes) or not spec.volumes.volumes:
            return Balance(spec.key, cluster)
        return BalanceWithVolumes(spec, self, cluster)

    def volumes_on(self, volumes: PodVolumes, row: int, cluster: ClusterState) -> tuple[int, int] | None:
        """Return the number of disks to attach, and the number that the node can still attach; None if disks don't count."""
        found = None
        for predicate, kind in VOLUME_KINDS.items():
            if predicate not in self._arguments.predicates:
                continue
            try:
                wanted = frozenset(names_of(kind, volumes, cluster.catalog))
                if wanted:
                    attached, missing, limit = self._attached_disks.on_row(kind, wanted, row)
                    found = (missing, limit - attached)
            except UnnamedClaim:
                # The predicate has already ended the cycle with an error.
                return None
        return found if found is not None and found[1] > 0 else None


class BalanceWithVolumes(Balance):
    """Scores ``int((1 - variance) * 10)`` of the three used fractions; without disks that count, like `Balance`."""

    def __init__(self, spec: AllocationAndVolumes, plugin: BalancedVolumes, cluster: ClusterState) -> None:
        super().__init__(spec.key, cluster)
        self._volumes = spec.volumes
        self._plugin = plugin
        self._cluster = cluster

    def score(self, row: int) -> int:
        """Return the score of a node; disks count if it can attach any."""
        node = self._cluster.nodes.nodes[row]
        volumes = self._plugin.volumes_on(self._volumes, row, self._cluster) if node is not None else None
        if volumes is None:
            return super().score(row)
        attached, allocatable = volumes
        parts = (self.fraction(0, row), self.fraction(1, row), float(attached) / float(allocatable))
        return 0 if max(parts) >= 1 else int((1 - _variance(parts)) * float(MAX_PRIORITY))


def _variance(parts: tuple[float, float, float]) -> float:
    cpu, memory, disks = parts
    mean = (cpu + memory + disks) / 3.0
    squares = ((cpu - mean) * (cpu - mean)) + ((memory - mean) * (memory - mean)) + ((disks - mean) * (disks - mean))
    return squares / 3.0
