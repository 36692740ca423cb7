"""The priorities over requests and capacity: LeastRequested, MostRequested, BalancedResourceAllocation, RequestedToCapacityRatio.

All integer arithmetic is int64 and cut off, all float arithmetic in Go's order of operations. Pods count with the larger of their
containers together and their largest init container; a container that asks for nothing counts 100 milli-CPU and 200 MiB.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from bayplan.base.errors import ConfigurationError
from bayplan.framework.plugin import Handle, Params, Reads, ScorePlugin
from bayplan.objects.classic_requests import scored_pod_request
from bayplan.objects.pod import Pod
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from bayplan.plugins.classic.arguments import classic_arguments
from bayplan.plugins.classic.policy import RatioArguments
from bayplan.plugins.classic.priority import MAX_PRIORITY
from bayplan.state.arrays import Floats, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

DEFAULT_SHAPE = ((0, 10), (100, 0))
FULL_UTILIZATION = 100


class WeighedResource(msgspec.Struct, frozen=True):
    """A resource that a score weighs.

    Attributes:
        number: of the resource, or None where nodes don't count it. basic: whether requests count with defaults (CPU, memory).
        request: what the pod asks for. weight: in the mean.
    """

    number: int | None
    basic: bool
    request: int
    weight: int


class AllocationSpec(msgspec.Struct, frozen=True):
    """The resources with what the pod asks of each."""

    key: tuple[WeighedResource, ...]


class ResourceAllocationPriority(ScorePlugin[AllocationSpec]):
    """Base of the priorities over requests and capacity."""

    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._arguments = classic_arguments(arguments)
        self._weights: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))

    def compile(self, pod: Pod, cluster: ClusterState) -> AllocationSpec:
        """Sum up what the pod asks for."""
        return AllocationSpec(tuple(self._weighed(pod, cluster, name, weight) for name, weight in self._weights))

    def _weighed(self, pod: Pod, cluster: ClusterState, name: str, weight: int) -> WeighedResource:
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not is_scalar(name):
            return WeighedResource(None, False, 0, weight)
        request = scored_pod_request(pod, name, pod_overhead=self._arguments.gates.pod_overhead)
        cluster.admit(request)
        return WeighedResource(cluster.register_resource(name), name in (CPU, MEMORY), request, weight)

    def score(self, spec: AllocationSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the weighted mean of the scores of all resources."""
        total, weights = rows.fill(0), 0
        for resource in spec.key:
            requested, capacity = amounts(resource, rows)
            total = rows.wrap(total + self.resource_score(requested, capacity, rows) * resource.weight)
            weights += resource.weight
        return rows.quotient(total, weights)

    def resource_score(self, requested: Ints, capacity: Ints, rows: Rows) -> Ints:
        """Return the score of one resource."""
        raise TypeError(f"{type(self).__name__} lacks resource_score()")


def amounts(resource: WeighedResource, rows: Rows) -> tuple[Ints, Ints]:
    """Return what would be requested of a resource with the pod, and its capacity; both 0 where nodes don't count it."""
    if resource.number is None:
        return rows.fill(0), rows.fill(0)
    number = resource.number
    taken = rows.non_zero_requested(number) if resource.basic else rows.requested(number)
    return rows.wrap(taken + resource.request), rows.allocatable(number)


def least_requested_score(requested: Ints, capacity: Ints, rows: Rows) -> Ints:
    """Return ``(capacity - requested) * 10 / capacity``; 0 without capacity, and where more is requested than there is."""
    exists = capacity != 0
    free = rows.wrap(rows.wrap(capacity - requested) * MAX_PRIORITY)
    score = rows.quotient(free, rows.where(exists, capacity, 1))
    return rows.where(exists & (requested <= capacity), score, 0)


def most_requested_score(requested: Ints, capacity: Ints, rows: Rows) -> Ints:
    """Return ``requested * 10 / capacity``; 0 without capacity, and where more is requested than there is."""
    exists = capacity != 0
    score = rows.quotient(rows.wrap(requested * MAX_PRIORITY), rows.where(exists, capacity, 1))
    return rows.where(exists & (requested <= capacity), score, 0)


class LeastRequestedPriority(ResourceAllocationPriority):
    """Prefers nodes with much left: the mean of the scores of CPU and memory."""

    name = "LeastRequestedPriority"

    def resource_score(self, requested: Ints, capacity: Ints, rows: Rows) -> Ints:
        """Return `least_requested_score`."""
        return least_requested_score(requested, capacity, rows)


class MostRequestedPriority(ResourceAllocationPriority):
    """Prefers nodes with little left: the mean of the scores of CPU and memory."""

    name = "MostRequestedPriority"

    def resource_score(self, requested: Ints, capacity: Ints, rows: Rows) -> Ints:
        """Return `most_requested_score`."""
        return most_requested_score(requested, capacity, rows)


class BalancedResourceAllocation(ResourceAllocationPriority):
    """Prefers nodes where CPU and memory are used to the same part; 0 where either would be full."""

    name = "BalancedResourceAllocation"

    def score(self, spec: AllocationSpec, params: Params | None, rows: Rows) -> Ints:
        """Return ``int((1 - |cpu - memory|) * 10)`` of the fractions."""
        cpu, memory = (fraction(resource, rows) for resource in spec.key)
        fits = (cpu < 1.0) & (memory < 1.0)
        balance = (1.0 - rows.absolute(cpu - memory)) * float(MAX_PRIORITY)
        return rows.where(fits, rows.trunc(rows.where_float(fits, balance, 0.0)), 0)


def fraction(resource: WeighedResource, rows: Rows) -> Floats:
    """Return which part of a resource would be requested with the pod; 1 without capacity."""
    requested, capacity = amounts(resource, rows)
    exists = capacity != 0
    share = rows.to_float(requested) / rows.to_float(rows.where(exists, capacity, 1))
    return rows.where_float(exists, share, 1.0)


class RequestedToCapacityRatioPriority(ResourceAllocationPriority):
    """Scores each resource by a piecewise linear function of its utilization. Argument: `RatioArguments`."""

    name = "RequestedToCapacityRatioPriority"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = self._arguments.argument.requested_to_capacity_ratio
        self._shape = DEFAULT_SHAPE if given is None else checked_shape(given)
        if given is not None and given.resources:
            self._weights = tuple({name: weight or 1 for name, weight in given.resources}.items())

    def score(self, spec: AllocationSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the weighted mean, rounded half up; a resource that scores 0 does not count."""
        total, weights = rows.fill(0), rows.fill(0)
        for resource in spec.key:
            requested, capacity = amounts(resource, rows)
            score = self.resource_score(requested, capacity, rows)
            counts = score > 0
            total = rows.wrap(total + rows.where(counts, rows.wrap(score * resource.weight), 0))
            weights = rows.wrap(weights + rows.where(counts, resource.weight, 0))
        some = weights != 0
        return rows.where(some, rows.quotient(2 * total + weights, rows.where(some, 2 * weights, 1)), 0)

    def resource_score(self, requested: Ints, capacity: Ints, rows: Rows) -> Ints:
        """Return what the shape makes of the utilization in whole percent; no capacity is as good as a full one."""
        exists = capacity != 0
        free = rows.wrap(rows.wrap(capacity - requested) * FULL_UTILIZATION)
        used = FULL_UTILIZATION - rows.quotient(free, rows.where(exists, capacity, 1))
        return broken_linear(self._shape, rows.where(exists & (requested <= capacity), used, FULL_UTILIZATION), rows)


def checked_shape(given: RatioArguments) -> tuple[tuple[int, int], ...]:
    """Return the points of a shape.

    Raises:
        ConfigurationError: in upstream's words.
    """
    problem = _shape_problem(given.shape)
    if problem:
        raise ConfigurationError(f"invalid RequestedToCapacityRatioPriority arguments: {problem}")
    return given.shape


def _shape_problem(shape: tuple[tuple[int, int], ...]) -> str:
    if not shape:
        return "at least one point must be specified"
    for number, ((before, _), (after, _)) in enumerate(pairwise(shape), 1):
        if before >= after:
            places = f"Utilization[{number - 1}]=={before} >= Utilization[{number}]=={after}"
            return f"utilization values must be sorted. {places}"
    for number, (utilization, score) in enumerate(shape):
        if utilization < 0:
            return f"utilization values must not be less than 0. Utilization[{number}]=={utilization}"
        if utilization > FULL_UTILIZATION:
            return f"utilization values must not be greater than 100. Utilization[{number}]=={utilization}"
        if score < 0:
            return f"score values must not be less than 0. Score[{number}]=={score}"
        if score > MAX_PRIORITY:
            # Upstream's spelling.
            return f"score valuses not be greater than 10. Score[{number}]=={score}"
    return ""


def broken_linear(shape: tuple[tuple[int, int], ...], utilization: Ints, rows: Rows) -> Ints:
    """Return a piecewise linear function: constant before the first point and after the last one, quotients cut towards zero."""
    value = rows.fill(shape[-1][1])
    for (x0, y0), (x1, y1) in reversed(list(pairwise(shape))):
        value = rows.where(utilization <= x1, y0 + rows.quotient((y1 - y0) * (utilization - x0), x1 - x0), value)
    return rows.where(utilization <= shape[0][0], shape[0][1], value)
