"""The priorities on requests and capacity: least and most requested, balanced, and requested-to-capacity ratio.

Integer arithmetic is int64, truncating; float arithmetic has Go's order of operations. A pod counts with the larger of
the sum of its containers and its largest init container; a container without requests counts 100 milli-CPU and 200 MiB.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.base.errors import ConfigurationError
from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.priority import MAX_PRIORITY
from bayplan.classic.policy import RatioArguments
from bayplan.classic.requests import scored_pod_request
from bayplan.framework.plugin import Handle, Reads, ScorePlugin
from bayplan.framework.rule import ScoreRule
from bayplan.objects.pod import Pod
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU

DEFAULT_SHAPE = ((0, 10), (100, 0))
FULL_UTILIZATION = 100
_FULL = FULL_UTILIZATION
_MOST = MAX_PRIORITY
_MAX_AS_FLOAT = float(MAX_PRIORITY)


class WeightedResource(msgspec.Struct, frozen=True):
    """A resource of a score, with its weight.

    Attributes:
        number: the number of the resource in the cluster's arrays; None if this release does not count it.
        basic: whether containers without a request count with a default (CPU and memory).
        request: the pod's request, in milli-CPU, bytes or units.
        weight: the weight of the resource in the mean.
    """

    number: int | None
    basic: bool
    request: int
    weight: int


class AllocationSpec(msgspec.Struct, frozen=True):
    """The scored resources, each with its weight and the pod's request."""

    key: tuple[WeightedResource, ...]


class ResourceAllocationPriority(ScorePlugin[AllocationSpec]):
    """Base of the priorities on requests and capacity."""

    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._arguments = classic_arguments(arguments)
        self._weights: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))

    def compile(self, pod: Pod, cluster: ClusterState) -> AllocationSpec:
        """Return the scored resources with the pod's requests."""
        return AllocationSpec(tuple(self._weighted(pod, cluster, name, weight) for name, weight in self._weights))

    def _weighted(self, pod: Pod, cluster: ClusterState, name: str, weight: int) -> WeightedResource:
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not is_scalar(name):
            return WeightedResource(None, False, 0, weight)
        request = scored_pod_request(pod, name, pod_overhead=self._arguments.gates.pod_overhead)
        cluster.admit(request)
        return WeightedResource(cluster.register_resource(name), name in (CPU, MEMORY), request, weight)


class LeastRequestedPriority(ResourceAllocationPriority):
    """Prefers nodes with a large free share: the mean of the scores of CPU and memory."""

    name = "LeastRequestedPriority"

    def score_rule(self, spec: AllocationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores free shares."""
        return LeastRequested(spec.key, cluster)


class MostRequestedPriority(ResourceAllocationPriority):
    """Prefers nodes with a small free share: the mean of the scores of CPU and memory."""

    name = "MostRequestedPriority"

    def score_rule(self, spec: AllocationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores requested shares."""
        return MostRequested(spec.key, cluster)


class BalancedResourceAllocation(ResourceAllocationPriority):
    """Prefers nodes with equal requested shares of CPU and memory; scores 0 if either would be full."""

    name = "BalancedResourceAllocation"

    def score_rule(self, spec: AllocationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores the difference of the shares."""
        return Balance(spec.key, cluster)


class RequestedToCapacityRatioPriority(ResourceAllocationPriority):
    """Scores each resource by a piecewise linear function of its utilization. Argument: `RatioArguments`."""

    name = "RequestedToCapacityRatioPriority"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = self._arguments.argument.requested_to_capacity_ratio
        self._shape = DEFAULT_SHAPE if given is None else checked_shape(given)
        if given is not None and given.resources:
            self._weights = tuple({name: weight or 1 for name, weight in given.resources}.items())

    def score_rule(self, spec: AllocationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores by the shape."""
        return CapacityRatio(spec.key, self._shape, cluster)


def checked_shape(given: RatioArguments) -> tuple[tuple[int, int], ...]:
    """Return the points of a shape after checking it.

    Raises:
        ConfigurationError: the shape is invalid; the message is upstream's.
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
            # The typo is upstream's.
            return f"score valuses not be greater than 10. Score[{number}]=={score}"
    return ""


class ResourceAmounts(ScoreRule):
    """Base of the rules: provides the requested amount of each resource, including the pod, and the capacity.

    Both are 0 for resources that nodes do not count.

    Args:
        resources: the scored resources.
        cluster: the state.
    """

    def __init__(self, resources: tuple[WeightedResource, ...], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.count = len(resources)
        numbers = [-1 if item.number is None else item.number for item in resources]
        usage_rows = [
            (NON_ZERO_CPU if item.basic else FIRST_RESOURCE) + number
            for item, number in zip(resources, numbers, strict=True)
        ]
        self.numbers: Any = np.array(numbers, dtype=np.intp)
        self.usage_rows: Any = np.array(usage_rows, dtype=np.intp)
        self.requests: Any = np.array([item.request for item in resources], dtype=np.int64)
        self.weights: Any = np.array([item.weight for item in resources], dtype=np.int64)

    def requested(self, place: int, row: int) -> int:
        """Return the requested amount of a resource, including the pod."""
        if self.numbers[place] < 0:
            return 0
        return go.add(self.columns.usage[self.usage_rows[place], row], self.requests[place])

    def capacity(self, place: int, row: int) -> int:
        """Return the node's amount of a resource."""
        return 0 if self.numbers[place] < 0 else self.columns.allocatable[self.numbers[place], row]

    def fraction(self, place: int, row: int) -> float:
        """Return the requested share of a resource, including the pod; 1 if the node has none of it."""
        capacity = self.capacity(place, row)
        return 1.0 if capacity == 0 else go.divide(float(self.requested(place, row)), float(capacity))


class LeastRequested(ResourceAmounts):
    """Scores the weighted mean of ``(capacity - requested) * 10 / capacity``.

    A resource scores 0 if the node has none of it, or if the requests exceed its capacity.
    """

    def score(self, row: int) -> int:
        """Return the weighted mean of the resources' scores."""
        total, weights = 0, 0
        for place in range(self.count):
            requested, capacity = self.requested(place, row), self.capacity(place, row)
            if capacity != 0 and requested <= capacity:
                score = go.quotient(go.mul(go.sub(capacity, requested), _MOST), capacity)
                total = go.add(total, go.mul(score, self.weights[place]))
            weights += self.weights[place]
        return go.quotient(total, weights)


class MostRequested(ResourceAmounts):
    """Scores the weighted mean of ``requested * 10 / capacity``.

    A resource scores 0 if the node has none of it, or if the requests exceed its capacity.
    """

    def score(self, row: int) -> int:
        """Return the weighted mean of the resources' scores."""
        total, weights = 0, 0
        for place in range(self.count):
            requested, capacity = self.requested(place, row), self.capacity(place, row)
            if capacity != 0 and requested <= capacity:
                score = go.quotient(go.mul(requested, _MOST), capacity)
                total = go.add(total, go.mul(score, self.weights[place]))
            weights += self.weights[place]
        return go.quotient(total, weights)


class Balance(ResourceAmounts):
    """Scores ``int((1 - |cpu - memory|) * 10)`` of the requested shares; 0 if either would be full."""

    def score(self, row: int) -> int:
        """Return the score of a node."""
        cpu, memory = self.fraction(0, row), self.fraction(1, row)
        if cpu >= 1.0 or memory >= 1.0:
            return 0
        return go.to_int64((1.0 - abs(cpu - memory)) * _MAX_AS_FLOAT)


class CapacityRatio(ResourceAmounts):
    """Scores the weighted mean of the shape's values at each utilization, rounded half up.

    Resources that score 0 are left out of the mean.

    Args:
        resources, cluster: as for the base.
        shape: the points (utilization in percent, score), sorted.
    """

    def __init__(
        self, resources: tuple[WeightedResource, ...], shape: tuple[tuple[int, int], ...], cluster: ClusterState
    ) -> None:
        super().__init__(resources, cluster)
        self._points = len(shape)
        self._utilizations: Any = np.array([utilization for utilization, _ in shape], dtype=np.int64)
        self._scores: Any = np.array([score for _, score in shape], dtype=np.int64)

    def score(self, row: int) -> int:
        """Return the weighted mean of the resources' scores."""
        total, weights = 0, 0
        for place in range(self.count):
            requested, capacity = self.requested(place, row), self.capacity(place, row)
            utilization = _FULL
            # A resource without capacity counts as full.
            if capacity != 0 and requested <= capacity:
                utilization = _FULL - go.quotient(go.mul(go.sub(capacity, requested), _FULL), capacity)
            score = self.shaped(utilization)
            if score > 0:
                total = go.add(total, go.mul(score, self.weights[place]))
                weights = go.add(weights, self.weights[place])
        return go.quotient(go.add(go.mul(2, total), weights), go.mul(2, weights)) if weights != 0 else 0

    def shaped(self, utilization: int) -> int:
        """Return the value of the shape, constant before its first point and after its last, truncated towards zero."""
        if utilization <= self._utilizations[0]:
            return self._scores[0]
        for point in range(1, self._points):
            if utilization <= self._utilizations[point]:
                x0, y0 = self._utilizations[point - 1], self._scores[point - 1]
                rise, run = self._scores[point] - y0, self._utilizations[point] - x0
                return y0 + go.quotient(rise * (utilization - x0), run)
        return self._scores[self._points - 1]
