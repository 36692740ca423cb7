"""NodeResourcesBalancedAllocation: prefers nodes whose resource usage the pod makes more balanced.

The balance of a node is 1 minus the standard deviation of the requested shares of its resources. The score is 75 if the
pod does not change it, and 50 to 100 otherwise. Float arithmetic keeps Go's order of operations. Source:
https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

from msgspec import Struct

from bayplan.base import go_arithmetic as go
from bayplan.framework.configuration.plugin_arguments import NodeResourcesBalancedAllocationArgs, ResourceSpec
from bayplan.framework.plugin import Handle, Params, PreScorePlugin, Reads, ScorePlugin
from bayplan.framework.rule import MAX_NODE_SCORE, ScoreRule
from bayplan.framework.status import SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.objects.requests import balance_requests, repeats_overhead
from bayplan.plugins.scored_devices import ScoredDevices
from bayplan.plugins.scored_resources import DEFAULT_RESOURCES, ResourceScore, ScoredResource, scored_resources
from bayplan.state.arrays import Bools, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import CHUNK
from bayplan.state.pod_info import FIRST_RESOURCE

HALF = MAX_NODE_SCORE // 2

MAX_IN_DOUBLES = 1 << 52
"""Amounts below this limit are converted exactly by `go.small_float`."""


class BalancedAllocationSpec(Struct, frozen=True, eq=False):
    """The pod's part of the score.

    Attributes:
        scored: the scored resources, with the pod's requests.
        best_effort: whether the pod requests none of the scored resources.
    """

    key: tuple[tuple[tuple[int, int], ...], bool]
    scored: tuple[ScoredResource, ...]
    best_effort: bool


class NodeResourcesBalancedAllocation(PreScorePlugin[BalancedAllocationSpec], ScorePlugin[BalancedAllocationSpec]):
    """Scores how much more evenly a node's resources would be used with the pod than without it."""

    name = "NodeResourcesBalancedAllocation"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    reads_feasible = False
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
        if isinstance(arguments, NodeResourcesBalancedAllocationArgs):
            self._resources = arguments.resources
        self.sums_in_pre_score = len(self._resources)
        self._devices = ScoredDevices(handle, self._resources)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return the data about resizes in the pod's status, or None."""
        return resizes_of(pod)

    def compile(self, pod: Pod, cluster: ClusterState) -> BalancedAllocationSpec:
        """Sum the pod's requests; containers without requests count as 0."""
        requests = balance_requests(pod, cluster.request_gates)
        if repeats_overhead(pod):
            requests = self._growing_requests(pod, cluster)
        best_effort = not any(requests.get(resource.name) for resource in self._resources)
        scored = scored_resources(self._resources, requests, cluster)
        key = (tuple([(resource.number, resource.request) for resource in scored]), best_effort)
        return BalancedAllocationSpec(key, scored, best_effort)

    def _growing_requests(self, pod: Pod, cluster: ClusterState) -> dict[str, int]:
        """Return the requests as upstream sums them: once for each resource, where each sum changes the next."""
        sums = (
            (resource.name, balance_requests(pod, cluster.request_gates, self.earlier_sums + number))
            for number, resource in enumerate(self._resources)
        )
        return {name: requests.get(name, 0) for name, requests in sums}

    def pre_score(self, spec: BalancedAllocationSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return SKIP for pods that request nothing, which the score would otherwise gather on one node."""
        return SKIP if spec.best_effort else self._devices.tallies(spec.scored)

    def pre_score_reads(self, spec: BalancedAllocationSpec) -> Reads:
        """Return OBJECTS if devices may serve a scored resource, else NOTHING."""
        return Reads.OBJECTS if self._devices.may_serve(spec.scored) else Reads.NOTHING

    def score_rule(self, spec: BalancedAllocationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores the change in balance."""
        return Balance(spec, self._devices, cluster)

    def score_error(self, spec: BalancedAllocationSpec, params: Params | None) -> str:
        """Return an error if no resources are configured, as upstream does."""
        return "" if self._resources else "resources not found"


def resizes_of(pod: Pod) -> str | None:
    """Return the data about resizes in a pod's status, or None."""
    status = pod.status
    if not status.container_statuses and not status.init_container_statuses and status.resources is None:
        return None
    containers = (*status.container_statuses, *status.init_container_statuses)
    resized = tuple([(item.name, item.resources, item.allocated_resources) for item in containers if item.resources])
    if not resized and status.resources is None:
        return None
    return repr((resized, status.resources, status.allocated_resources, status.conditions))


class Balance(ResourceScore):
    """Scores the change in a node's balance, ignoring resources that the node lacks.

    The deviation of two resources is half of the difference between their shares; that of fewer is 0.
    """

    def __init__(self, spec: BalancedAllocationSpec, devices: ScoredDevices, cluster: ClusterState) -> None:
        super().__init__(spec.scored, devices, cluster)
        self._best_effort = spec.best_effort

    def score_all(self, raw: Ints) -> None:
        """Score all nodes: two resources with small amounts as vectors of doubles, anything else node by node."""
        if (
            len(self.scored) != 2
            or self.has_devices
            or (self._best_effort and self.params is None)
            or not self._score_in_doubles(raw)
        ):
            ScoreRule.score_all(self, raw)

    def _score_in_doubles(self, raw: Ints) -> bool:
        """Write the scores; return False if they are invalid because an amount is not in 0..`MAX_IN_DOUBLES` - 1."""
        columns, seen = self.columns, 0
        scratch, count = columns.scratch_floats, columns.count
        before, after, whole = scratch[0], scratch[1], scratch[2]
        half, other = float(HALF), CHUNK
        for start in range(0, count, CHUNK):
            length = min(CHUNK, count - start)
            seen |= self._find_shares(0, start, length) | self._find_shares(1, start, length)
            for i in range(length):
                gap_after = abs((after[i] - after[other + i]) / 2.0)
                gap_before = abs((before[i] - before[other + i]) / 2.0)
                change = math.floor((1.0 - gap_after) * 100.0) - math.floor((1.0 - gap_before) * 100.0)
                # Resources that the node lacks are ignored.
                change = change if whole[i] * whole[other + i] > 0.0 else 0.0
                raw[start + i] = go.small_int64(half + math.floor((half + change) / 2.0))
        return 0 <= seen < MAX_IN_DOUBLES

    def _find_shares(self, place: int, start: int, length: int) -> int:
        """Write the used shares without and with the pod, and the allocatable amounts; return the bitwise OR of all amounts."""
        resource: ScoredResource = self.scored[place]
        columns, number, request, base = self.columns, resource.number, resource.request, place * CHUNK
        allocatable, usage = columns.allocatable[number], columns.usage[FIRST_RESOURCE + number]
        scratch, seen = columns.scratch_floats, 0
        before, after, whole = scratch[0], scratch[1], scratch[2]
        for i in range(length):
            used, together = usage[start + i], go.add(usage[start + i], request)
            seen |= used | together | allocatable[start + i]
            amount = go.small_float(allocatable[start + i])
            whole[base + i] = amount
            divisor = amount if amount > 0.0 else 1.0
            share = go.divide(go.small_float(used), divisor)
            before[base + i] = share if share < 1.0 else 1.0
            share = go.divide(go.small_float(together), divisor)
            after[base + i] = share if share < 1.0 else 1.0
        return seen

    def score(self, row: int) -> int:
        """Return 50 plus half of (50 plus the change in balance)."""
        if self._best_effort and self.params is None:
            return 0
        columns, counting = self.columns, 0
        high_before, low_before, high_after, low_after = 0.0, 0.0, 0.0, 0.0
        for place in range(len(self.scored)):
            resource: ScoredResource = self.scored[place]
            whole = columns.allocatable[resource.number, row]
            if self.has_devices:
                whole = self.allocatable(place, row)
            if whole == 0:
                continue
            used = columns.usage[FIRST_RESOURCE + resource.number, row]
            if self.has_devices:
                used = self.requested(place, row)
            before, after = share_of(used, whole), share_of(go.add(used, resource.request), whole)
            if counting == 0:
                high_before, low_before, high_after, low_after = before, before, after, after
            else:
                high_before, low_before = max(high_before, before), min(low_before, before)
                high_after, low_after = max(high_after, after), min(low_after, after)
            counting += 1
        if counting == 2:
            change = go.sub(
                evenness(abs((high_after - low_after) / 2.0)), evenness(abs((high_before - low_before) / 2.0))
            )
        elif counting > 2:
            change = go.sub(evenness(self.deviation(row, True)), evenness(self.deviation(row, False)))
        else:
            change = 0
        return HALF + go.quotient(go.add(HALF, change), 2)

    def deviation(self, row: int, with_pod: bool) -> float:
        """Return the standard deviation of the requested shares, with Go's order of operations."""
        counting, total, squares = 0, 0.0, 0.0
        for place in range(len(self.scored)):
            resource: ScoredResource = self.scored[place]
            whole = self.allocatable(place, row)
            if whole != 0:
                used = self.requested(place, row)
                total = total + share_of(go.add(used, resource.request) if with_pod else used, whole)
                counting += 1
        mean = go.divide(total, float(counting))
        for place in range(len(self.scored)):
            resource = self.scored[place]
            whole = self.allocatable(place, row)
            if whole != 0:
                used = self.requested(place, row)
                share = share_of(go.add(used, resource.request) if with_pod else used, whole)
                squares = squares + (share - mean) * (share - mean)
        return math.sqrt(go.divide(squares, float(counting)))


def share_of(used: int, whole: int) -> float:
    """Return the used share of a resource, at most 1; `whole` is not 0."""
    share = go.divide(float(used), float(whole))
    return 1.0 if share > 1.0 else share


def evenness(deviation: float) -> int:
    """Return 100 times (1 - the deviation), truncated to an integer."""
    return go.to_int64((1.0 - deviation) * 100.0)
