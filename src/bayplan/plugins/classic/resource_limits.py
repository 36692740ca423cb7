"""ResourceLimitsPriority (a gate): a node whose capacity holds the pod's limits of CPU or memory is a little better."""

from __future__ import annotations

import msgspec

from bayplan.framework.plugin import Params, Reads, ScorePlugin
from bayplan.objects.classic_requests import resource_limits
from bayplan.objects.pod import Pod
from bayplan.objects.resource_names import CPU, MEMORY
from bayplan.state import resource_table
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


class LimitsSpec(msgspec.Struct, frozen=True):
    """The pod's limits of CPU (milli) and memory (bytes)."""

    key: tuple[int, int]


class ResourceLimitsPriority(ScorePlugin[LimitsSpec]):
    """Gives 1 where a limit is set and there is that much, else 0."""

    name = "ResourceLimitsPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> LimitsSpec:
        """Sum up the limits."""
        limits = resource_limits(pod)
        return LimitsSpec((limits[CPU], limits[MEMORY]))

    def score(self, spec: LimitsSpec, params: Params | None, rows: Rows) -> Ints:
        """Return 1 or 0."""
        satisfied = rows.everywhere(False)
        for limit, number in zip(spec.key, (resource_table.CPU, resource_table.MEMORY), strict=True):
            capacity = rows.allocatable(number)
            if limit:
                satisfied = satisfied | ((capacity != 0) & (limit <= capacity))
        return rows.where(satisfied, 1, 0)
