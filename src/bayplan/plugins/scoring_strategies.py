"""The scoring strategies of NodeResourcesFit: LeastAllocated, MostAllocated, RequestedToCapacityRatio.

Resources that the node lacks are ignored. All numbers are int64, with Go's order of operations. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing/.
"""

from __future__ import annotations

import math
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
from bayplan.framework.rule import MAX_NODE_SCORE, ScoreRule
from bayplan.plugins.scored_devices import ScoredDevices
from bayplan.plugins.scored_resources import ResourceScore, ScoredResource
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import CHUNK
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU
from bayplan.state.resource_table import MEMORY

Shape: TypeAlias = Sequence[tuple[int, int]]
"""Points (utilization in percent, score from 0 to 100) of a piecewise linear function, by increasing utilization."""

FULL_UTILIZATION = 100

MAX_IN_DOUBLES = 1 << 46
"""Amounts below this limit can be divided as doubles: 101 times the amount is less than 2**53."""

MAX_WEIGHT = 100
"""The largest weight that configurations may give a resource."""


class StrategyScore(ResourceScore):
    """Base of the strategies: the weighted mean of the scores of all resources.

    Attributes:
        skips_zeros: whether to exclude resources with the score 0 from the mean.
        rounds: whether the mean is rounded half up instead of truncated.
    """

    def __init__(
        self, scored: tuple[ScoredResource, ...], shape: Shape, devices: ScoredDevices, cluster: ClusterState
    ) -> None:
        super().__init__(scored, devices, cluster)
        self.skips_zeros = False
        self.rounds = False

    def score(self, row: int) -> int:
        """Return the weighted mean of the resources' scores; 0 if the node has none of the resources."""
        total = weights = 0
        columns = self.columns
        for place in range(len(self.scored)):
            resource: ScoredResource = self.scored[place]
            allocatable = columns.allocatable[resource.number, row]
            if self.has_devices:
                allocatable = self.allocatable(place, row)
            if allocatable != 0:
                if resource.number <= MEMORY:
                    requested = go.add(columns.usage[NON_ZERO_CPU + resource.number, row], resource.request)
                else:
                    requested = go.add(self.requested(place, row), resource.request)
                share = self.share(requested, allocatable)
                if share > 0 or not self.skips_zeros:
                    total = go.add(total, go.mul(share, resource.weight))
                    weights = go.add(weights, resource.weight)
        if weights == 0:
            return 0
        if self.rounds:
            # Scores and weights are small and not negative here: rounding as integers gives the same result as Go's
            # floats.
            return go.quotient(go.add(go.mul(2, total), weights), go.mul(2, weights))
        return go.quotient(total, weights)

    def share(self, requested: int, allocatable: int) -> int:
        """Return the score of one resource; `allocatable` is not 0."""
        raise TypeError(f"{type(self).__name__} lacks share()")


class LeastAllocated(StrategyScore):
    """Scores a node by the percentage of its allocatable resources that remains free."""

    def score_all(self, raw: Ints) -> None:
        """Score all nodes as vectors of doubles if all amounts are below 2**46, else node by node.

        Division in doubles is exact enough if the sum of dividend and divisor is below 2**53: then a non-integral
        quotient is further from the next integer than the rounding error.
        """
        if self.has_devices or self._score_in_doubles(raw) >= MAX_IN_DOUBLES:
            ScoreRule.score_all(self, raw)

    def _score_in_doubles(self, raw: Ints) -> int:
        """Write the scores; return at least `MAX_IN_DOUBLES` if they are invalid: an amount or weight is too large."""
        columns, seen = self.columns, 0
        total, counted, count = columns.scratch_floats[0], columns.scratch_floats[1], columns.count
        for place in range(len(self.scored)):
            resource: ScoredResource = self.scored[place]
            if not 0 <= resource.weight <= MAX_WEIGHT:
                return MAX_IN_DOUBLES
        for start in range(0, count, CHUNK):
            length = min(CHUNK, count - start)
            for i in range(length):
                total[i] = counted[i] = 0.0
            for place in range(len(self.scored)):
                seen |= self._add_in_doubles(place, start, length)
            for i in range(length):
                weights = counted[i] if counted[i] > 0.0 else 1.0
                raw[start + i] = go.small_int64(math.floor(go.divide(total[i], weights)))
        return MAX_IN_DOUBLES if seen < 0 else seen

    def _add_in_doubles(self, place: int, start: int, length: int) -> int:
        """Add the scores of a resource for `length` rows; return the bitwise OR of all amounts."""
        resource: ScoredResource = self.scored[place]
        columns, number, request = self.columns, resource.number, resource.request
        allocatable = columns.allocatable[number]
        usage = columns.usage[(NON_ZERO_CPU if number <= MEMORY else FIRST_RESOURCE) + number]
        total, counted, seen = columns.scratch_floats[0], columns.scratch_floats[1], 0
        factor, weight = float(MAX_NODE_SCORE), float(resource.weight)
        for i in range(length):
            requested = go.add(usage[start + i], request)
            seen |= requested | allocatable[start + i]
            left = go.sub(allocatable[start + i], requested)
            left = left if left > 0 else 0
            whole = go.small_float(allocatable[start + i])
            # The result for a node without the resource is 0, because nothing of it is free.
            divisor = whole if whole > 0.0 else 1.0
            total[i] += math.floor(go.divide(go.small_float(left) * factor, divisor)) * weight
            counted[i] += weight if whole > 0.0 else 0.0
        return seen

    def share(self, requested: int, allocatable: int) -> int:
        """Return the percentage that remains free; 0 if requests exceed the allocatable amount."""
        if requested > allocatable:
            return 0
        return go.quotient(go.mul(go.sub(allocatable, requested), MAX_NODE_SCORE), allocatable)


class MostAllocated(StrategyScore):
    """Scores a node by the requested percentage of its allocatable resources."""

    def share(self, requested: int, allocatable: int) -> int:
        """Return the percentage that is requested, at most 100."""
        if requested > allocatable:
            requested = allocatable
        return go.quotient(go.mul(requested, MAX_NODE_SCORE), allocatable)


class RequestedToCapacityRatio(StrategyScore):
    """Scores a node by the value of a shape at the requested percentage, rounded to the nearest integer."""

    def __init__(
        self, scored: tuple[ScoredResource, ...], shape: Shape, devices: ScoredDevices, cluster: ClusterState
    ) -> None:
        super().__init__(scored, shape, devices, cluster)
        self.skips_zeros = self.rounds = True
        self._utilizations: Any = np.array([utilization for utilization, _ in shape], dtype=np.int64)
        self._scores: Any = np.array([score for _, score in shape], dtype=np.int64)

    def share(self, requested: int, allocatable: int) -> int:
        """Return the value of the shape at the requested percentage."""
        if requested > allocatable:
            return self.value_at(FULL_UTILIZATION)
        return self.value_at(go.quotient(go.mul(requested, FULL_UTILIZATION), allocatable))

    def value_at(self, utilization: int) -> int:
        """Return the value of the shape, which is constant before its first point and after its last.

        Division truncates towards zero, so falling segments are rounded up and rising segments down.
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
"""The classes of the strategies, by name in configurations."""
