"""NodeResourcesBalancedAllocation: pods go rather where they make the use of the resources more even.

The evenness of a node is 1 minus the standard deviation of the requested shares of its resources. The score is how the pod changes
it: 75 for no change, 50 to 100 in all. Float arithmetic keeps Go's order of operations.
Source: https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bayplan.framework.configuration.plugin_arguments import NodeResourcesBalancedAllocationArgs, ResourceSpec
from bayplan.framework.plugin import MAX_NODE_SCORE, Handle, Params, PreScorePlugin, Reads, ScorePlugin
from bayplan.framework.status import SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.objects.requests import balance_requests, repeats_overhead
from bayplan.plugins.scored_devices import ScoredDevices
from bayplan.plugins.scored_resources import (
    DEFAULT_RESOURCES,
    ScoredResource,
    request_column,
    request_columns,
    scored_resources,
    with_devices,
)
from bayplan.plugins.stacked_specs import StackedSpecs
from bayplan.state.amount_columns import AmountColumns
from bayplan.state.arrays import Bools, Floats, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.resource_table import CPU, MEMORY
from bayplan.state.views import Rows

SmallInts: TypeAlias = npt.NDArray[np.int32]
"""Shares in percent: converted from floats in a third of the time that int64 takes."""

HALF = MAX_NODE_SCORE // 2
FEW_ROWS = 24
"""Up to here rows that changed are computed one by one; more of them, all at once."""


class BalancedAllocationSpec(Struct, frozen=True, eq=False):
    """What the score needs of a pod.

    Attributes:
        key: what follows, of which `is_fast` follows in turn.
        scored: the resources that count, with what the pod adds.
        best_effort: the pod asks for none of them.
        is_fast: CPU and memory are all that counts.
    """

    key: tuple[tuple[ScoredResource, ...], bool]
    scored: tuple[ScoredResource, ...]
    best_effort: bool
    is_fast: bool


class NodeResourcesBalancedAllocation(PreScorePlugin[BalancedAllocationSpec], ScorePlugin[BalancedAllocationSpec]):
    """Scores how even a node's resources are used with the pod. Arguments: `NodeResourcesBalancedAllocationArgs`."""

    name = "NodeResourcesBalancedAllocation"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    scalar = True
    amounts_only = True

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
        if isinstance(arguments, NodeResourcesBalancedAllocationArgs):
            self._resources = arguments.resources
        self.sums_in_pre_score = len(self._resources)
        self._evenness = CurrentEvenness()
        self._stacked = StackedSpecs(_stack)
        self._devices = ScoredDevices(handle, self._resources)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return what the pod's status says of resizes."""
        status = pod.status
        if not status.container_statuses and not status.init_container_statuses and status.resources is None:
            return None
        containers = (*status.container_statuses, *status.init_container_statuses)
        resized = tuple((item.name, item.resources, item.allocated_resources) for item in containers if item.resources)
        if not resized and status.resources is None:
            return None
        return repr((resized, status.resources, status.allocated_resources, status.conditions))

    def compile(self, pod: Pod, cluster: ClusterState) -> BalancedAllocationSpec:
        """Sum up what the pod requests; containers that ask for nothing count with nothing."""
        requests = balance_requests(pod, cluster.request_gates)
        if repeats_overhead(pod):
            requests = self._growing_requests(pod, cluster)
        best_effort = not any(requests.get(resource.name) for resource in self._resources)
        scored = scored_resources(self._resources, requests, cluster)
        is_fast = len(scored) == 2 and scored[0].number == CPU and scored[1].number == MEMORY
        return BalancedAllocationSpec((scored, best_effort), scored, best_effort, is_fast)

    def _growing_requests(self, pod: Pod, cluster: ClusterState) -> dict[str, int]:
        """Return requests as upstream finds them, which sums them up once for each resource, and by that changes them."""
        sums = (
            (resource.name, balance_requests(pod, cluster.request_gates, self.earlier_sums + number))
            for number, resource in enumerate(self._resources)
        )
        return {name: requests.get(name, 0) for name, requests in sums}

    def pre_score(self, spec: BalancedAllocationSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """SKIP pods that ask for nothing: they would all go to one node."""
        return SKIP if spec.best_effort else self._devices.tallies(spec.scored)

    def pre_score_reads(self, spec: BalancedAllocationSpec) -> Reads:
        """Devices are looked at for scalar resources only."""
        return Reads.OBJECTS if self._devices.may_count(spec.scored) else Reads.NOTHING

    def score(self, spec: BalancedAllocationSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the score of the change in balance."""
        if params is None and spec.best_effort:
            return rows.fill(0)
        if spec.is_fast and rows.state.regular:
            return balance_of_cpu_memory(spec.scored, self._evenness, rows)
        tallies = self._devices.tallies(spec.scored) if params is None else params
        return balance(with_devices(spec.scored, tallies), rows)

    def score_many(self, specs: Sequence[BalancedAllocationSpec], rows: Rows) -> Ints | None:
        """Return the scores for pods of which each makes a difference to CPU and memory alone."""
        requests = self._stacked.of(specs) if rows.state.regular else None
        return None if requests is None else balance_of_columns(requests, self._evenness, rows)

    def score_error(self, spec: BalancedAllocationSpec, params: Params | None) -> str:
        """Refuse to score without resources, as upstream does."""
        return "" if self._resources else "resources not found"


def _stack(specs: Sequence[BalancedAllocationSpec]) -> Floats | None:
    return request_columns(spec.scored for spec in specs) if all(spec.is_fast for spec in specs) else None


def balance(resources: Sequence[ScoredResource], rows: Rows) -> Ints:
    """Return the score of the change in balance, for any resources."""
    allocatable = [resource.allocatable(rows) for resource in resources]
    allocated = [resource.requested(rows) for resource in resources]
    requested = [rows.wrap(amount + resource.request) for amount, resource in zip(allocated, resources, strict=True)]
    change = rows.wrap(_evenness(requested, allocatable, rows) - _evenness(allocated, allocatable, rows))
    return HALF + rows.quotient(rows.wrap(HALF + change), 2)


def _evenness(requested: Sequence[Ints], allocatable: Sequence[Ints], rows: Rows) -> Ints:
    """Return 100 times (1 - the standard deviation of the requested shares), cut to an integer.

    A resource of which the node has none does not count. With two that count, the deviation is half of what they differ;
    with fewer it is 0.
    """
    count, total = rows.fill(0), rows.fill_float(0.0)
    highest, lowest = rows.fill_float(-float("inf")), rows.fill_float(float("inf"))
    shares = []
    for amount, whole in zip(requested, allocatable, strict=True):
        exists = whole != 0
        share = rows.to_float(amount) / rows.to_float(rows.where(exists, whole, 1))
        share = rows.where_float(share > 1, 1.0, share)
        count = count + rows.where(exists, 1, 0)
        total = total + rows.where_float(exists, share, 0.0)
        highest = rows.where_float(exists & (share > highest), share, highest)
        lowest = rows.where_float(exists & (share < lowest), share, lowest)
        shares.append((exists, share))
    divisor = rows.to_float(rows.where(count > 0, count, 1))
    mean = total / divisor
    squares = rows.fill_float(0.0)
    for exists, share in shares:
        squares = squares + rows.where_float(exists, (share - mean) * (share - mean), 0.0)
    deviation = rows.where_float(count > 2, rows.sqrt(squares / divisor), 0.0)
    two = count == 2
    difference = rows.where_float(two, highest, 0.0) - rows.where_float(two, lowest, 0.0)
    deviation = rows.where_float(two, rows.absolute(difference / 2), deviation)
    return rows.trunc((1 - deviation) * float(MAX_NODE_SCORE))


def balance_of_cpu_memory(resources: Sequence[ScoredResource], evenness: CurrentEvenness, rows: Rows) -> Ints:
    """Return `balance` of CPU and memory alone: a tenth of the time. Right while ``regular``."""
    cpu, memory = resources
    if not rows.scalar:
        return balance_of_columns(request_column(cpu.request, memory.request), evenness, rows)
    cpu_all, memory_all = rows.divisor(CPU), rows.divisor(MEMORY)
    cpu_used, memory_used = rows.requested(CPU), rows.requested(MEMORY)
    before = _evenness_of_two(cpu_used, cpu_all, memory_used, memory_all)
    after = _evenness_of_two(cpu_used + cpu.request, cpu_all, memory_used + memory.request, memory_all)
    return HALF + int((HALF + after - before) * 0.5)  # type: ignore[return-value]


def balance_of_columns(requests: Floats, evenness: CurrentEvenness, rows: Rows) -> Ints:
    """Return int64[..., rows], `balance_of_cpu_memory` for requests of float64[..., 2, 1]."""
    scores = _evenness_of_columns(rows.cpu_memory_requested_with(requests), rows, fits=rows.leave_room(requests))
    scores += evenness.of_all(rows) if rows.index is None else _offset(rows)
    scores >>= 1
    return scores.astype(np.int64)


def _evenness_of_two(cpu: Any, cpu_all: Any, memory: Any, memory_all: Any) -> Any:
    """Return how even a node's use of CPU and memory is, from 50 to 100, as plain numbers."""
    cpu_share = cpu / cpu_all if cpu < cpu_all else 1.0
    memory_share = memory / memory_all if memory < memory_all else 1.0
    return int(100.0 * (1.0 - abs(cpu_share - memory_share) * 0.5))


def _evenness_of_columns(used: Floats, rows: Rows, *, fits: bool = False) -> SmallInts:
    """Return int32[..., rows], the same for columns: float64[..., 2, rows] of cpu and memory; `fits`: there is room for all."""
    offered = rows.cpu_memory_divisors()
    shares = used / offered if fits else np.minimum(used, offered) / offered
    evenness: Floats = shares[..., 0, :]
    evenness -= shares[..., 1, :]
    np.abs(evenness, out=evenness)
    evenness *= 0.5
    np.subtract(1.0, evenness, out=evenness)
    evenness *= 100.0
    return evenness.astype(np.int32)


def _offset(rows: Rows) -> SmallInts:
    """Return int32[rows], what the evenness with the pod is added to, before the sum is halved: then it is the score."""
    offset = _evenness_of_columns(rows.cpu_memory_requested(), rows)
    np.subtract(3 * HALF, offset, out=offset)
    return offset


NOTHING: SmallInts = np.zeros(0, dtype=np.int32)


class CurrentEvenness:
    """How evenly CPU and memory of each node are used now, which is the same for all pods: kept between full passes.

    As `_offset`; of rows, and of the states that rows are in.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # Of the columns that somebody asked about last: their era, how far their log was followed, and what was found.
        self._known: dict[type[AmountColumns], tuple[AmountColumns, int, int, SmallInts]] = {}

    def of_all(self, rows: Rows) -> SmallInts:
        """Return int32[rows] of all rows; only those that changed since the last call are computed. Not to be written to."""
        columns = rows.columns()
        log, count = columns.log, len(rows)
        source, era, position, values = self._known.get(type(columns), (None, 0, 0, NOTHING))
        changed = log.since(position) if source is columns and era == columns.era else None
        if changed is None or len(changed) > FEW_ROWS:
            values = _offset(rows)
        else:
            if len(values) < count:
                values = np.append(values, np.zeros(count, dtype=np.int32))
            requested, offered = columns.requested.item, columns.offered.item
            for place in changed:
                used = (requested(CPU, place), offered(CPU, place), requested(MEMORY, place), offered(MEMORY, place))
                values[place] = 3 * HALF - _evenness_of_two(*used)
        self._known[type(columns)] = (columns, columns.era, log.end, values)
        return values[:count]
