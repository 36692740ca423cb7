"""The scoring strategies of NodeResourcesFit: LeastAllocated, MostAllocated, RequestedToCapacityRatio. Not a plugin.

Each is a rule about one node. A resource of which a node has none does not count on that node. All numbers are int64, in Go's
order of operations. Source: https://kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.framework.configuration.plugin_arguments import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
)
from bayplan.framework.rule import MAX_NODE_SCORE
from bayplan.plugins.scored_devices import ScoredDevices
from bayplan.plugins.scored_resources import ResourceScore, ScoredResource
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import NON_ZERO_CPU
from bayplan.state.resource_table import MEMORY

Shape: TypeAlias = Sequence[tuple[int, int]]
"""Points (utilization in percent, score of 0 to 100) of a piecewise linear function, by rising utilization."""

FULL_UTILIZATION = 100


class StrategyScore(ResourceScore):
    """Base of the strategies: the weighted mean of what a strategy says of each resource."""

    def __init__(
        self, scored: Sequence[ScoredResource], shape: Shape, devices: ScoredDevices, cluster: ClusterState
    ) -> None:
        super().__init__(scored, devices, cluster)

    def score(self, row: int) -> int:
        """Return the weighted mean; 0 if the node has none of the resources."""
        total = weights = 0
        columns = self.columns
        for place in range(self.count):
            number = self.numbers[place]
            allocatable = columns.allocatable[number, row]
            if self.has_devices:
                allocatable = self.allocatable(place, row)
            if allocatable != 0:
                if number <= MEMORY:
                    requested = go.add(columns.usage[NON_ZERO_CPU + number, row], self.requests[place])
                else:
                    requested = go.add(self.requested(place, row), self.requests[place])
                share = self.share(requested, allocatable)
                total = go.add(total, go.mul(share, self.weights[place]))
                weights = go.add(weights, self.weights[place])
        return 0 if weights == 0 else go.quotient(total, weights)

    def share(self, requested: int, allocatable: int) -> int:
        """Return the score of one resource; `allocatable` is not 0."""
        raise TypeError(f"{type(self).__name__} lacks share()")


class LeastAllocated(StrategyScore):
    """The percentage that is left free."""

    def share(self, requested: int, allocatable: int) -> int:
        """Return the percentage that is left free; 0 if more is requested than there is."""
        if requested > allocatable:
            return 0
        return go.quotient(go.mul(go.sub(allocatable, requested), MAX_NODE_SCORE), allocatable)


class MostAllocated(StrategyScore):
    """The percentage that is requested."""

    def share(self, requested: int, allocatable: int) -> int:
        """Return the percentage that is requested, at most 100."""
        if requested > allocatable:
            requested = allocatable
        return go.quotient(go.mul(requested, MAX_NODE_SCORE), allocatable)


class RequestedToCapacityRatio(StrategyScore):
    """What a shape makes of the percentage that is requested."""

    def __init__(
        self, scored: Sequence[ScoredResource], shape: Shape, devices: ScoredDevices, cluster: ClusterState
    ) -> None:
        super().__init__(scored, shape, devices, cluster)
        self._utilizations: Any = np.array([utilization for utilization, _ in shape], dtype=np.int64)
        self._scores: Any = np.array([score for _, score in shape], dtype=np.int64)

    def score(self, row: int) -> int:
        """Return the weighted mean, rounded to the nearest integer, halves up. A resource with the score 0 does not count."""
        total = weights = 0
        columns = self.columns
        for place in range(self.count):
            number = self.numbers[place]
            allocatable = columns.allocatable[number, row]
            if self.has_devices:
                allocatable = self.allocatable(place, row)
            if allocatable != 0:
                if number <= MEMORY:
                    requested = go.add(columns.usage[NON_ZERO_CPU + number, row], self.requests[place])
                else:
                    requested = go.add(self.requested(place, row), self.requests[place])
                share = self.share(requested, allocatable)
                if share > 0:
                    total = go.add(total, go.mul(share, self.weights[place]))
                    weights = go.add(weights, self.weights[place])
        # Scores and weights are small and not negative here, so that rounding integers is what rounding Go's float is.
        return 0 if weights == 0 else go.quotient(go.add(go.mul(2, total), weights), go.mul(2, weights))

    def share(self, requested: int, allocatable: int) -> int:
        """Return the score of a percentage."""
        if requested > allocatable:
            return self.value_at(FULL_UTILIZATION)
        return self.value_at(go.quotient(go.mul(requested, FULL_UTILIZATION), allocatable))

    def value_at(self, utilization: int) -> int:
        """Return the piecewise linear function: constant before the first point and after the last one.

        Division cuts towards zero, so that falling segments are rounded up and rising ones down.
        """
        points = len(self._utilizations)
        for place in range(points):
            if utilization <= self._utilizations[place]:
                if place == 0:
                    return self._scores[0]
                start, low = self._utilizations[place - 1], self._scores[place - 1]
                rise = go.mul(go.sub(self._scores[place], low), go.sub(utilization, start))
                return go.add(low, go.quotient(rise, go.sub(self._utilizations[place], start)))
        return self._scores[points - 1]


STRATEGIES: Mapping[str, type[StrategyScore]] = MappingProxyType(
    {
        LEAST_ALLOCATED: LeastAllocated,
        MOST_ALLOCATED: MostAllocated,
        REQUESTED_TO_CAPACITY_RATIO: RequestedToCapacityRatio,
    }
)
"""The strategies by the name that they have in configurations."""
