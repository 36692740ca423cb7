"""The scoring strategies of NodeResourcesFit: LeastAllocated, MostAllocated, RequestedToCapacityRatio. Not a plugin.

Each is a function of the resources that count, the columns and the shape (RequestedToCapacityRatio alone has one). A resource of
which a node has none does not count on that node. All numbers are int64, in Go's order of operations.
Source: https://kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from bayplan.framework.configuration.plugin_arguments import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
)
from bayplan.framework.plugin import MAX_NODE_SCORE
from bayplan.plugins.scored_resources import ScoredResource, request_column
from bayplan.state.arrays import Floats, Ints
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.views import Rows

Shape: TypeAlias = Sequence[tuple[int, int]]
"""Points (utilization in percent, score of 0 to 100) of a piecewise linear function, by rising utilization."""

Strategy: TypeAlias = Callable[[Sequence[ScoredResource], Shape, Rows], Ints]

FULL_UTILIZATION = 100


def least_allocated(resources: Sequence[ScoredResource], shape: Shape, rows: Rows) -> Ints:
    """Return the weighted mean of the percentages that are left free."""
    total, weights = rows.fill(0), rows.fill(0)
    for resource in resources:
        allocatable = resource.allocatable(rows)
        requested = rows.wrap(resource.non_zero_requested(rows) + resource.request)
        exists = allocatable != 0
        hundredfold = rows.wrap(rows.wrap(allocatable - requested) * MAX_NODE_SCORE)
        score = rows.quotient(hundredfold, rows.where(exists, allocatable, 1))
        score = rows.where(requested > allocatable, 0, score)
        total = rows.wrap(total + rows.where(exists, rows.wrap(score * resource.weight), 0))
        weights = weights + rows.where(exists, resource.weight, 0)
    return _mean(total, weights, rows)


def most_allocated(resources: Sequence[ScoredResource], shape: Shape, rows: Rows) -> Ints:
    """Return the weighted mean of the percentages that are requested."""
    total, weights = rows.fill(0), rows.fill(0)
    for resource in resources:
        allocatable = resource.allocatable(rows)
        requested = rows.wrap(resource.non_zero_requested(rows) + resource.request)
        exists = allocatable != 0
        hundredfold = rows.wrap(rows.minimum(requested, allocatable) * MAX_NODE_SCORE)
        score = rows.quotient(hundredfold, rows.where(exists, allocatable, 1))
        total = rows.wrap(total + rows.where(exists, rows.wrap(score * resource.weight), 0))
        weights = weights + rows.where(exists, resource.weight, 0)
    return _mean(total, weights, rows)


def requested_to_capacity_ratio(resources: Sequence[ScoredResource], shape: Shape, rows: Rows) -> Ints:
    """Return the weighted mean of what the shape makes of the percentages that are requested.

    A resource for which the shape gives 0 does not count. The mean is rounded to the nearest integer, halves away from zero.
    """
    total, weights = rows.fill(0), rows.fill(0)
    for resource in resources:
        allocatable = resource.allocatable(rows)
        requested = rows.wrap(resource.non_zero_requested(rows) + resource.request)
        exists = allocatable != 0
        hundredfold = rows.wrap(requested * FULL_UTILIZATION)
        utilization = rows.quotient(hundredfold, rows.where(exists, allocatable, 1))
        utilization = rows.where(requested > allocatable, FULL_UTILIZATION, utilization)
        score = broken_linear(shape, utilization, rows)
        counts = exists & (score > 0)
        total = rows.wrap(total + rows.where(counts, rows.wrap(score * resource.weight), 0))
        weights = weights + rows.where(counts, resource.weight, 0)
    # Scores and weights are small and not negative here, so that rounding integers is what rounding Go's float is.
    nothing = weights == 0
    return rows.where(nothing, 0, rows.quotient(2 * total + weights, rows.where(nothing, 1, 2 * weights)))


def broken_linear(shape: Shape, utilization: Ints, rows: Rows) -> Ints:
    """Return a piecewise linear function: constant before the first point and after the last one.

    Division cuts towards zero, so that falling segments are rounded up and rising ones down.
    """
    value = rows.fill(shape[-1][1])
    for (x0, y0), (x1, y1) in reversed(list(pairwise(shape))):
        rise = rows.quotient(rows.wrap((y1 - y0) * rows.wrap(utilization - x0)), x1 - x0)
        value = rows.where(utilization <= x1, y0 + rise, value)
    first_x, first_y = shape[0]
    return rows.where(utilization <= first_x, first_y, value)


def least_allocated_cpu_memory(resources: Sequence[ScoredResource], shape: Shape, rows: Rows) -> Ints:
    """Return `least_allocated` of CPU and memory with equal weights: a sixth of the time. Right while ``regular``."""
    cpu, memory = resources
    if not rows.scalar:
        return least_allocated_of_columns(request_column(cpu.request, memory.request), rows)
    # One row: plain numbers, and no calls of number functions, which would take as long as all the rest.
    cpu_all, memory_all = rows.divisor(CPU), rows.divisor(MEMORY)
    cpu_free = cpu_all - rows.non_zero_requested(CPU) - cpu.request
    memory_free = memory_all - rows.non_zero_requested(MEMORY) - memory.request
    cpu_score = int(100.0 * cpu_free / cpu_all) if cpu_free > 0.0 else 0
    memory_score = int(100.0 * memory_free / memory_all) if memory_free > 0.0 else 0
    return (cpu_score + memory_score) // 2  # type: ignore[return-value]


def least_allocated_of_columns(requests: Floats, rows: Rows) -> Ints:
    """Return int64[..., rows], `least_allocated_cpu_memory` for requests of float64[..., 2, 1]."""
    # All numbers are whole and exact up to the division. Where nothing is left, that counts as 0.
    hundredfold = 100.0 * requests
    free: Floats = rows.cpu_memory_hundredfold() - hundredfold
    if not rows.leave_hundredfold(hundredfold):
        np.maximum(free, _nothing(free.shape) if free.size > MANY else 0.0, out=free)
    free /= rows.cpu_memory_divisors()
    percents = free.astype(np.int32)
    total = percents[..., 0, :]
    total += percents[..., 1, :]
    total >>= 1
    return total.astype(np.int64)


MANY = 2048
"""From so many numbers on they are compared with an array of zeros twice as fast as with a zero."""


@lru_cache(maxsize=4)
def _nothing(shape: tuple[int, ...]) -> Floats:
    return np.zeros(shape, dtype=np.float64)


def special_case(strategy: Strategy, resources: Sequence[ScoredResource]) -> Strategy | None:
    """Return a faster function that agrees with a strategy for these resources while the state is ``regular``, or None."""
    if strategy is least_allocated and len(resources) == 2:
        cpu, memory = resources
        if cpu.number == CPU and memory.number == MEMORY and cpu.weight == memory.weight:
            return least_allocated_cpu_memory
    return None


def _mean(total: Ints, weights: Ints, rows: Rows) -> Ints:
    nothing = weights == 0
    return rows.where(nothing, 0, rows.quotient(total, rows.where(nothing, 1, weights)))


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        LEAST_ALLOCATED: least_allocated,
        MOST_ALLOCATED: most_allocated,
        REQUESTED_TO_CAPACITY_RATIO: requested_to_capacity_ratio,
    }
)
"""The strategies by the name that they have in configurations."""
