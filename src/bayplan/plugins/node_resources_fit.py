"""NodeResourcesFit: a node must have room for what the pod requests; the score is the configured strategy's.

Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/, KEP-2837 (pod-level resources), KEP-5004
(extended resources that devices stand for), and scoring_strategies.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from bayplan.base.errors import ConfigurationError, InvariantError
from bayplan.framework.configuration.plugin_arguments import (
    LEAST_ALLOCATED,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
)
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.plugin import (
    MAX_NODE_SCORE,
    PROCEED,
    FilterPlugin,
    Handle,
    Params,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from bayplan.framework.status import ERROR_BIT, MAX_PLUGIN_CODE, UNRESOLVABLE_BIT, Status
from bayplan.objects.pod import Pod
from bayplan.objects.requests import fit_requests, fit_score_requests
from bayplan.objects.resource_names import is_extended, is_scalar
from bayplan.plugins.node_resources_fit_hints import FitHints
from bayplan.plugins.scored_devices import ScoredDevices
from bayplan.plugins.scored_resources import (
    DEFAULT_RESOURCES,
    ScoredResource,
    request_column,
    request_columns,
    scored_resources,
    with_devices,
)
from bayplan.plugins.scoring_strategies import (
    STRATEGIES,
    Strategy,
    least_allocated_cpu_memory,
    least_allocated_of_columns,
    special_case,
)
from bayplan.plugins.stacked_specs import StackedSpecs
from bayplan.state.arrays import Bools, Codes, Floats, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.resource_table import CPU, FIRST_RESOURCES, MEMORY
from bayplan.state.views import Rows

NO_PRE_FILTER = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
TOO_MANY_PODS = 1
STATE_MISSING = 0x2000 | ERROR_BIT
MOST_FLAGS = 12
"""So many requests have a bit each in a verdict, after that of `TOO_MANY_PODS`; pods with more get numbered sets."""

MOST_ORDERS = 256
"""The orders of so many sets of resources are remembered."""

NOTHING = -(2**63)
"""Stands for the amount of a resource that a pod does not request: no node has less room than that."""

MAX_CUSTOM_PRIORITY_SCORE = 10
"""The scale of scores in shapes."""

Shortage: TypeAlias = tuple[bool, ...]
"""Whether there are too many pods, then for each request whether it lacks room."""


class Request(Struct, frozen=True, gc=False):
    """What a pod wants of one resource.

    Attributes:
        name, number: the resource. amount: greater than 0 (milli for cpu).
        flag: the bit of a verdict that says that there is too little.
    """

    name: str
    number: int
    amount: int
    flag: int


class NodeResourcesFitSpec(Struct, frozen=True, eq=False):
    """What the filter and the score need of a pod.

    Attributes:
        key: the amounts of both.
        requests: what the filter compares, in the order of the reasons.
        delegable: scalar resources among them, for which a device class may stand in.
        scored: what the score weighs.
        fast: the special case of the strategy that holds for `scored`, or None.
        columns: float64[2, 1], the requests for CPU and memory, where these are all there is; else None.
    """

    key: tuple[tuple[tuple[int, int], ...], tuple[ScoredResource, ...]]
    requests: tuple[Request, ...]
    delegable: tuple[Request, ...]
    scored: tuple[ScoredResource, ...]
    fast: Strategy | None
    columns: Floats | None


class NodeResourcesFit(
    PreFilterPlugin[NodeResourcesFitSpec],
    FilterPlugin[NodeResourcesFitSpec],
    PreScorePlugin[NodeResourcesFitSpec],
    ScorePlugin[NodeResourcesFitSpec],
):
    """Rejects nodes without room for the pod, and scores how full a node gets. Arguments: `NodeResourcesFitArgs`."""

    name = "NodeResourcesFit"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    scalar = True
    amounts_only = True
    sums_in_pre_filter = 1

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = arguments if isinstance(arguments, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        self._ignored = frozenset(given.ignored_resources)
        self._ignored_groups = frozenset(given.ignored_resource_groups)
        strategy = given.scoring_strategy or ScoringStrategy(type=LEAST_ALLOCATED, resources=DEFAULT_RESOURCES)
        if strategy.type not in STRATEGIES:
            raise ConfigurationError(f"scoring strategy {strategy.type} is not supported")
        self._strategy = STRATEGIES[strategy.type]
        self._resources = strategy.resources
        ratio = strategy.requested_to_capacity_ratio or RequestedToCapacityRatioParam()
        factor = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
        self._shape = tuple((point.utilization, point.score * factor) for point in ratio.shape)
        self._device_classes: DeviceClassResolver | None = None
        if handle.feature_gates.enabled("DRAExtendedResource"):
            self._device_classes = DeviceClassResolver(handle.cluster.catalog)
        self._scored_devices = ScoredDevices(handle, self._resources)
        self._hints = FitHints(handle.cluster.request_gates, self._device_classes)
        self._stacked_requests = StackedSpecs(_stack_requests)
        self._stacked_scores = StackedSpecs(_stack_scores)
        self._orders: dict[tuple[str, ...], tuple[tuple[str, int], ...]] = {}
        self._shortages: dict[tuple[tuple[int, int], ...], dict[Shortage, int]] = {}

    def compile(self, pod: Pod, cluster: ClusterState) -> NodeResourcesFitSpec:
        """Sum up what the pod requests, once as the filter counts and once as the score does."""
        amounts = fit_requests(pod, cluster.request_gates)
        requests = []
        for name, flag in self._compared(tuple([name for name, amount in amounts.items() if amount > 0])):
            amount = amounts[name]
            cluster.admit(amount)
            requests.append(Request(name, cluster.register_resource(name), amount, flag))
        scored = scored_resources(self._resources, fit_score_requests(pod), cluster)
        return NodeResourcesFitSpec(
            (tuple([(request.number, request.amount) for request in requests]), scored),
            tuple(requests),
            tuple(
                [request for request in requests if request.number >= len(FIRST_RESOURCES) and is_scalar(request.name)]
            )
            if self._device_classes is not None
            else (),
            scored,
            special_case(self._strategy, scored),
            _cpu_memory_column(requests),
        )

    def _compared(self, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
        """Return which of these resources are compared, in the order of the reasons, each with its flag."""
        known = self._orders.get(names)
        if known is None:
            if len(self._orders) >= MOST_ORDERS:
                self._orders.clear()
            wanted = sorted(name for name in names if not self._is_ignored(name))
            # CPU, memory and ephemeral storage come first, as upstream names them; the others it gives in random order.
            ordered = sorted((name for name in wanted if not is_scalar(name)), key=FIRST_RESOURCES.index)
            ordered += [name for name in wanted if is_scalar(name)]
            flags = (TOO_MANY_PODS << 1 + place if place < MOST_FLAGS else 0 for place in range(len(ordered)))
            known = self._orders[names] = tuple(zip(ordered, flags, strict=True))
        return known

    def _is_ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def pre_filter_reads(self, spec: NodeResourcesFitSpec) -> Reads:
        """Device classes are looked at for scalar resources only."""
        return Reads.OBJECTS if spec.delegable else Reads.NOTHING

    def pre_score_reads(self, spec: NodeResourcesFitSpec) -> Reads:
        """Devices are looked at for scalar resources only."""
        return Reads.OBJECTS if self._scored_devices.may_count(spec.scored) else Reads.NOTHING

    def pre_filter(
        self, spec: NodeResourcesFitSpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Return as params the numbers of the resources for which a device class stands: nodes without them may pass."""
        classes = self._device_classes
        if not spec.delegable or not classes:
            return PROCEED
        return PreFilterResult(tuple(item.number for item in spec.delegable if classes.get(item.name) is not None))

    def filter(self, spec: NodeResourcesFitSpec, params: Params | None, rows: Rows) -> Codes:
        """Return which requests lack room, a bit each, and whether one is more than the whole node offers."""
        if params is None:
            return rows.codes(rows.fill(STATE_MISSING))
        if rows.scalar:
            if _has_room(spec.requests, rows):
                return rows.verdicts()
        elif spec.columns is not None and rows.index is None and rows.state.regular:
            return self._filter_all(spec, spec.columns, params, rows)
        return self._filter(spec, params, rows)

    def _filter_all(self, spec: NodeResourcesFitSpec, columns: Floats, params: Params, rows: Rows) -> Codes:
        """Return the verdicts of all rows for a pod that requests CPU and memory alone; only where room lacks, more is asked."""
        verdicts = rows.verdicts()
        if not rows.some_crowded() and rows.leave_room(columns):
            return verdicts
        failing = rows.crowded()
        lacking = rows.cpu_memory_requested_with(columns) > rows.cpu_memory_divisors()
        if np.count_nonzero(lacking):
            failing = failing | lacking[0] | lacking[1]
        if np.count_nonzero(failing):
            index = failing.nonzero()[0]
            verdicts[index] = self._filter(spec, params, rows.at(index))
        return verdicts

    def _filter(self, spec: NodeResourcesFitSpec, params: Params, rows: Rows) -> Codes:
        crowded = rows.pod_count() >= rows.allowed_pods()
        somewhere = crowded
        lacking = []
        for request in spec.requests:
            allocatable = rows.allocatable(request.number)
            lacks = request.amount > allocatable - rows.requested(request.number)
            if params and request.number in params:
                # DynamicResources finds devices for it on nodes that have no such resource of their own.
                lacks = lacks & (allocatable > 0)
            lacking.append((lacks, request, allocatable))
            somewhere = somewhere | lacks
        if rows.nowhere(somewhere):
            return rows.verdicts()
        if len(lacking) > MOST_FLAGS:
            return self._numbered_verdicts(spec, crowded, lacking, rows)
        cases = [(crowded, TOO_MANY_PODS)]
        for lacks, request, allocatable in lacking:
            cases.append((lacks, request.flag))
            cases.append((lacks & (request.amount > allocatable), UNRESOLVABLE_BIT))
        return rows.verdicts(*cases)

    def _numbered_verdicts(
        self, spec: NodeResourcesFitSpec, crowded: Bools, lacking: Sequence[tuple[Bools, Request, Ints]], rows: Rows
    ) -> Codes:
        """Return verdicts that number the sets of what is short, for pods with more requests than a verdict has bits."""
        known = self._shortages.setdefault(spec.key[0], {})
        unresolvable = rows.everywhere(False)
        for lacks, request, allocatable in lacking:
            unresolvable = unresolvable | (lacks & (request.amount > allocatable))
        flags = [crowded, *(lacks for lacks, _, _ in lacking)]
        shortages: list[Shortage] = list(zip(*(rows.to_list(flag) for flag in flags), strict=True))
        nothing = (False,) * len(flags)
        numbers = [0 if shortage == nothing else known.setdefault(shortage, len(known) + 1) for shortage in shortages]
        if len(known) > MAX_PLUGIN_CODE:
            raise InvariantError(f"{len(known)} sets of resources were short for one pod")
        verdict = rows.from_list(numbers)
        return rows.codes(verdict + rows.where(unresolvable, UNRESOLVABLE_BIT, 0))

    def reasons(self, spec: NodeResourcesFitSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return ``Too many pods`` and ``Insufficient ...`` for what is short."""
        if verdict == STATE_MISSING:
            return (NO_PRE_FILTER,)
        names = ("Too many pods", *(f"Insufficient {request.name}" for request in spec.requests))
        if len(spec.requests) > MOST_FLAGS:
            numbers = self._shortages[spec.key[0]]
            shortage = next(found for found, number in numbers.items() if number == verdict & ~UNRESOLVABLE_BIT)
        else:
            shortage = tuple(bool(verdict & TOO_MANY_PODS << place) for place in range(len(names)))
        return tuple(name for name, short in zip(names, shortage, strict=True) if short)

    def pre_score(self, spec: NodeResourcesFitSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return as params the devices that stand for resources which the score weighs."""
        return self._scored_devices.tallies(spec.scored)

    def score(self, spec: NodeResourcesFitSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the score of the strategy."""
        if spec.fast is not None and rows.state.regular:
            return spec.fast(spec.scored, self._shape, rows)
        tallies = self._scored_devices.tallies(spec.scored) if params is None else params
        return self._strategy(with_devices(spec.scored, tallies), self._shape, rows)

    def filter_many(self, specs: Sequence[NodeResourcesFitSpec], rows: Rows) -> Codes | None:
        """Return the verdicts for several pods, resource by resource."""
        wanted = self._stacked_requests.of(specs)
        if wanted is None:
            return None
        verdicts: Codes = np.zeros((len(specs), len(rows)), dtype=np.uint16)
        verdicts |= (rows.pod_count() >= rows.allowed_pods()) * np.uint16(TOO_MANY_PODS)
        for number, amounts, flags in wanted:
            allocatable = rows.allocatable(number)
            lacks = amounts > allocatable - rows.requested(number)
            if np.count_nonzero(lacks):
                verdicts |= lacks * flags
                verdicts |= (lacks & (amounts > allocatable)) * np.uint16(UNRESOLVABLE_BIT)
        return verdicts

    def score_many(self, specs: Sequence[NodeResourcesFitSpec], rows: Rows) -> Ints | None:
        """Return the scores of the special case that holds for all of the pods, if one does."""
        requests = self._stacked_scores.of(specs) if rows.state.regular else None
        return None if requests is None else least_allocated_of_columns(requests, rows)

    def score_error(self, spec: NodeResourcesFitSpec, params: Params | None) -> str:
        """Refuse to score without resources, as upstream does."""
        return "" if self._resources else "resources not found"

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register pods that leave or shrink, nodes that come or grow, and device classes that come or change."""
        pod = ClusterEvent(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        events: list[tuple[ClusterEvent, QueueingHint | None]] = [
            (pod, self._hints.is_schedulable_after_pod_event),
            (node, self._hints.is_schedulable_after_node_change),
        ]
        if self._device_classes is not None:
            device_class = ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
            events.append((device_class, self._hints.is_schedulable_after_device_class_event))
        return events


def _cpu_memory_column(requests: Sequence[Request]) -> Floats | None:
    """Return float64[2, 1], requests for CPU and memory, None where there are others. What is not requested, no node lacks."""
    if len(requests) == 2 and requests[0].number == CPU and requests[1].number == MEMORY:
        return request_column(requests[0].amount, requests[1].amount)
    amounts: dict[int, float] = {CPU: -np.inf, MEMORY: -np.inf}
    for request in requests:
        if request.number not in amounts:
            return None
        amounts[request.number] = request.amount
    return request_column(amounts[CPU], amounts[MEMORY])


def _has_room(requests: Sequence[Request], rows: Rows) -> bool:
    """Return whether one row has room for everything: what is mostly so, and quickly seen."""
    room: Any = rows.pod_count() < rows.allowed_pods()
    for request in requests:
        room = room and request.amount <= rows.allocatable(request.number) - rows.requested(request.number)
    return bool(room)


def _stack_requests(specs: Sequence[NodeResourcesFitSpec]) -> list[tuple[int, Ints, Codes]] | None:
    """Return by resource int64[specs, 1] amounts and uint16[specs, 1] flags; None where verdicts number sets of requests."""
    if any(len(spec.requests) > MOST_FLAGS for spec in specs):
        return None
    wanted = []
    for number in dict.fromkeys(request.number for spec in specs for request in spec.requests):
        asked = [next((item for item in spec.requests if item.number == number), None) for spec in specs]
        amounts = np.array([(NOTHING if item is None else item.amount,) for item in asked], dtype=np.int64)
        wanted.append((number, amounts, np.array([(item.flag if item else 0,) for item in asked], dtype=np.uint16)))
    return wanted


def _stack_scores(specs: Sequence[NodeResourcesFitSpec]) -> Floats | None:
    if any(spec.fast is not least_allocated_cpu_memory for spec in specs):
        return None
    return request_columns(spec.scored for spec in specs)
