"""ResourceLimitsPriority (behind a gate): slightly prefers nodes whose capacity satisfies the pod's limits."""

from __future__ import annotations

import msgspec

from bayplan.classic.requests import resource_limits
from bayplan.framework.plugin import Reads, ScorePlugin
from bayplan.framework.rule import ScoreRule
from bayplan.objects.pod import Pod
from bayplan.objects.resource_names import CPU, MEMORY
from bayplan.state import resource_table
from bayplan.state.cluster_state import ClusterState


class LimitsSpec(msgspec.Struct, frozen=True):
    """The pod's limits of CPU (milli) and memory (bytes)."""

    key: tuple[int, int]


class ResourceLimitsPriority(ScorePlugin[LimitsSpec]):
    """Scores 1 if the pod sets a limit that the node's capacity satisfies, else 0."""

    name = "ResourceLimitsPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> LimitsSpec:
        """Return the pod's limits."""
        limits = resource_limits(pod)
        return LimitsSpec((limits[CPU], limits[MEMORY]))

    def score_rule(self, spec: LimitsSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that compares the limits with the node's capacity."""
        return HoldsLimits(spec.key, cluster)


class HoldsLimits(ScoreRule):
    """Scores 1 if the pod sets a limit that the node's capacity satisfies, else 0."""

    def __init__(self, limits: tuple[int, int], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        numbers = (resource_table.CPU, resource_table.MEMORY)
        self._limits = [(number, limit) for number, limit in zip(numbers, limits, strict=True) if limit]

    def score(self, row: int) -> int:
        """Compare each limit with the node's capacity."""
        for number, limit in self._limits:
            capacity = self.columns.allocatable[number, row]
            if capacity != 0 and limit <= capacity:
                return 1
        return 0
