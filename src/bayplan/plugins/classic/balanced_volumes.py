"""BalancedResourceAllocation with the gate BalanceAttachedNodeVolumes: disks that a node can attach are a third resource."""

from __future__ import annotations

import numpy as np

from bayplan.framework.plugin import Handle, Params, Reads
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.attached_volumes import VOLUME_KINDS, UnnamedClaim, names_of
from bayplan.plugins.classic.max_volume_count import VolumeRoom
from bayplan.plugins.classic.priority import MAX_PRIORITY
from bayplan.plugins.classic.resource_allocation import AllocationSpec, BalancedResourceAllocation, fraction
from bayplan.plugins.pod_claims import NO_VOLUMES, PodVolumes, pod_volumes
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


class AllocationAndVolumes(AllocationSpec, frozen=True):
    """What the pod asks for, and its volumes."""

    volumes: PodVolumes = NO_VOLUMES


class BalancedVolumes(BalancedResourceAllocation):
    """Scores nodes by how little the used parts of CPU, memory and attachable disks vary.

    Disks count where one of the configured predicates counts those of the pod; of several the last one that is asked decides.
    """

    name = "BalancedResourceAllocation"
    reads = Reads.EVERYTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._room = VolumeRoom(handle.cluster, attach_volume_limit=self._arguments.gates.attach_volume_limit)

    def compile(self, pod: Pod, cluster: ClusterState) -> AllocationAndVolumes:
        """Sum up what the pod asks for, and keep its volumes."""
        return AllocationAndVolumes(super().compile(pod, cluster).key, pod_volumes(pod))

    def score(self, spec: AllocationSpec, params: Params | None, rows: Rows) -> Ints:
        """Return ``int((1 - variance) * 10)`` of the three parts, or that of CPU and memory where no disks count."""
        scores = np.array(super().score(spec, params, rows))
        if not isinstance(spec, AllocationAndVolumes) or not spec.volumes.volumes:
            return scores
        cpu, memory = (fraction(resource, rows) for resource in spec.key)
        nodes = rows.state.nodes.nodes
        for place, row in enumerate(rows.row_numbers().tolist()):
            room = self._room_on(spec.volumes, row, rows.state) if nodes[row] is not None else None
            if room is None:
                continue
            attached, allocatable = room
            disks = float(attached) / float(allocatable)
            parts = (float(cpu[place]), float(memory[place]), disks)
            scores[place] = 0 if max(parts) >= 1 else int((1 - _variance(parts)) * float(MAX_PRIORITY))
        return scores

    def _room_on(self, volumes: PodVolumes, row: int, cluster: ClusterState) -> tuple[int, int] | None:
        """Return how many disks would be attached, and how many more the node takes; None where none count."""
        found = None
        for predicate, kind in VOLUME_KINDS.items():
            if predicate not in self._arguments.predicates:
                continue
            try:
                wanted = frozenset(names_of(kind, volumes, cluster.catalog))
                if wanted:
                    attached, missing, limit = self._room.on_row(kind, wanted, row)
                    found = (missing, limit - attached)
            except UnnamedClaim:
                # The predicate has ended the cycle by then.
                return None
        return found if found is not None and found[1] > 0 else None


def _variance(parts: tuple[float, float, float]) -> float:
    cpu, memory, disks = parts
    mean = (cpu + memory + disks) / 3.0
    squares = ((cpu - mean) * (cpu - mean)) + ((memory - mean) * (memory - mean)) + ((disks - mean) * (disks - mean))
    return squares / 3.0
