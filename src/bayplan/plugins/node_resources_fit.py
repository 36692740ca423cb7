"""NodeResourcesFit: rejects nodes without room for the pod's requests, and scores nodes by a configured strategy.

Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/, KEP-2837 (pod-level resources),
KEP-5004 (extended resources served by devices), and scoring_strategies.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from bayplan.base import go_arithmetic as go
from bayplan.base.errors import ConfigurationError, InvariantError
from bayplan.framework.configuration.plugin_arguments import (
    LEAST_ALLOCATED,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
)
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
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
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.status import ERROR_BIT, MAX_PLUGIN_CODE, UNRESOLVABLE_BIT, Status
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import (
    RequestOptions,
    fit_requests,
    fit_score_requests,
    node_amounts,
    pod_amounts,
    pod_requests,
)
from bayplan.objects.resource import DeviceClass
from bayplan.objects.resource_names import (
    CPU,
    DEVICE_CLASS_PREFIX,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_extended,
    is_scalar,
)
from bayplan.plugins.scored_devices import ScoredDevices
from bayplan.plugins.scored_resources import DEFAULT_RESOURCES, ScoredResource, scored_resources
from bayplan.plugins.scoring_strategies import STRATEGIES
from bayplan.state.arrays import Bools, Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import CHUNK, Columns
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from bayplan.state.resource_table import FIRST_RESOURCES

NO_PRE_FILTER = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
TOO_MANY_PODS = 1
STATE_MISSING = 0x2000 | ERROR_BIT
MAX_FLAGS = 12
"""Maximum number of requests that have a bit in a verdict, besides `TOO_MANY_PODS`; with more, sets are numbered."""

MAX_CUSTOM_PRIORITY_SCORE = 10
"""The maximum of scores in shapes."""

Shortage: TypeAlias = tuple[bool, ...]
"""Whether the node has too many pods, then for each request whether the node has too little of its resource."""


class Request:
    """The amount that a pod requests of one resource.

    Attributes:
        name: the name of the resource.
        number: the number of the resource in the state.
        amount: greater than 0 (milli for cpu).
        flag: the bit of a verdict that stands for an insufficient amount.
    """

    def __init__(self, name: str, number: int, amount: int, flag: int) -> None:
        self.name = name
        self.number = number
        self.amount = amount
        self.flag = flag


class NodeResourcesFitSpec(Struct, frozen=True, eq=False):
    """The pod's part of the filter and the score.

    Attributes:
        key: the amounts that filter and score use.
        requests: the requests that the filter compares, in the order of the reasons.
        delegable: the requests for scalar resources, which devices may serve.
        scored: the scored resources, with the pod's requests.
    """

    key: tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
    requests: tuple[Request, ...]
    delegable: tuple[Request, ...]
    scored: tuple[ScoredResource, ...]


class NodeResourcesFit(
    PreFilterPlugin[NodeResourcesFitSpec],
    FilterPlugin[NodeResourcesFitSpec],
    PreScorePlugin[NodeResourcesFitSpec],
    ScorePlugin[NodeResourcesFitSpec],
):
    """Rejects nodes without room for the pod, and scores nodes by their usage. Arguments: `NodeResourcesFitArgs`."""

    name = "NodeResourcesFit"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    reads_feasible = False
    compiles_volumes = False
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
        self._gates = handle.cluster.request_gates
        self._shortages: dict[tuple[tuple[int, int], ...], dict[Shortage, int]] = {}

    def compile(self, pod: Pod, cluster: ClusterState) -> NodeResourcesFitSpec:
        """Sum the pod's requests, once by the rules of the filter and once by those of the score."""
        amounts = fit_requests(pod, cluster.request_gates)
        # CPU, memory and ephemeral storage come first, as upstream; the others, in random order upstream, are sorted.
        names = [name for name in FIRST_RESOURCES if name in amounts]
        names += sorted([name for name in amounts if name not in FIRST_RESOURCES and not self._is_ignored(name)])
        requests: list[Request] = []
        for name in names:
            amount = amounts[name]
            if amount > 0:
                cluster.admit(amount)
                flag = TOO_MANY_PODS << 1 + min(len(requests), MAX_FLAGS - 1)
                requests.append(Request(name, cluster.register_resource(name), amount, flag))
        scored = scored_resources(self._resources, fit_score_requests(pod), cluster)
        delegable: tuple[Request, ...] = ()
        if self._device_classes is not None:
            delegable = tuple([request for request in requests if is_scalar(request.name)])
        compared = tuple([(request.number, request.amount) for request in requests])
        key = (compared, tuple([(resource.number, resource.request) for resource in scored]))
        return NodeResourcesFitSpec(key, tuple(requests), delegable, scored)

    def _is_ignored(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.partition("/")[0] in self._ignored_groups)

    def pre_filter_reads(self, spec: NodeResourcesFitSpec) -> Reads:
        """Return OBJECTS if a device class may serve a requested resource, else NOTHING."""
        return Reads.OBJECTS if spec.delegable else Reads.NOTHING

    def pre_score_reads(self, spec: NodeResourcesFitSpec) -> Reads:
        """Return OBJECTS if devices may serve a scored resource, else NOTHING."""
        return Reads.OBJECTS if self._scored_devices.may_serve(spec.scored) else Reads.NOTHING

    def pre_filter(
        self, spec: NodeResourcesFitSpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Return as params the numbers of the resources that a device class serves; nodes without them may pass."""
        classes = self._device_classes
        if not spec.delegable or not classes:
            return PROCEED
        return PreFilterResult(tuple(item.number for item in spec.delegable if classes.get(item.name) is not None))

    def filter_rule(self, spec: NodeResourcesFitSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that compares the pod's requests with the free resources of nodes."""
        many = len(spec.requests) > MAX_FLAGS
        return FreeResourcesRule(spec, self._shortages.setdefault(spec.key[0], {}) if many else {}, cluster)

    def reasons(self, spec: NodeResourcesFitSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return ``Too many pods``, and ``Insufficient ...`` for each resource that is short."""
        if verdict == STATE_MISSING:
            return (NO_PRE_FILTER,)
        names = ("Too many pods", *[f"Insufficient {request.name}" for request in spec.requests])
        if len(spec.requests) > MAX_FLAGS:
            numbers = self._shortages[spec.key[0]]
            shortage = next(found for found, number in numbers.items() if number == verdict & ~UNRESOLVABLE_BIT)
        else:
            shortage = tuple([bool(verdict & TOO_MANY_PODS << place) for place in range(len(names))])
        return tuple([name for name, short in zip(names, shortage, strict=True) if short])

    def pre_score(self, spec: NodeResourcesFitSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return the devices that serve scored resources as params."""
        return self._scored_devices.tallies(spec.scored)

    def score_rule(self, spec: NodeResourcesFitSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule of the scoring strategy."""
        return self._strategy(spec.scored, self._shape, self._scored_devices, cluster)

    def score_error(self, spec: NodeResourcesFitSpec, params: Params | None) -> str:
        """Return an error if no resources are configured, as upstream does."""
        return "" if self._resources else "resources not found"

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register pods deleted or scaled down, nodes added or grown, and device classes added or changed."""
        pod = ClusterEvent(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        events: list[tuple[ClusterEvent, QueueingHint | None]] = [
            (pod, self.is_schedulable_after_pod_event),
            (node, self.is_schedulable_after_node_change),
        ]
        if self._device_classes is not None:
            device_class = ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
            events.append((device_class, self.is_schedulable_after_device_class_event))
        return events

    # Queueing hints.

    @hint(Pod, old=True)
    def is_schedulable_after_pod_event(self, pod: Pod, before: Pod, after: Pod | None) -> bool:
        """Queue the pod if a pod with a node was deleted, or now requests less of a resource that is needed."""
        if after is None:
            return bool(before.spec.node_name or before.status.nominated_node_name)
        return self._gates.in_place_pod_vertical_scaling and self._makes_room(pod, before, after)

    def _makes_room(self, pod: Pod, before: Pod, after: Pod) -> bool:
        """Return whether the waiting pod itself, or a pod that uses the same resources, now requests less."""
        if after.metadata.uid == pod.metadata.uid:
            return True
        if not after.spec.node_name:
            return False
        options = RequestOptions(
            use_status_resources=self._gates.in_place_pod_vertical_scaling,
            pod_level_vertical_scaling=self._gates.in_place_pod_level_resources_vertical_scaling,
        )
        was, is_now = pod_amounts(before, options), pod_amounts(after, options)
        return any(
            max(0, was.get(name, 0)) > max(0, is_now.get(name, 0))
            for name, quantity in pod_requests(pod, options).items()
            if quantity.sign() != 0 and (name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name))
        )

    @hint(Node)
    def is_schedulable_after_node_change(self, pod: Pod, before: Node | None, after: Node | None) -> bool:
        """Queue the pod if the empty node would fit it, and was added or has more of a requested resource."""
        requests = fit_requests(pod, self._gates)
        if after is None or not self._fits(requests, after):
            return False
        return before is None or self._has_grown(requests, before, after)

    def _fits(self, requests: dict[str, int], node: Node) -> bool:
        """Return whether a node would fit the requests if it were empty. Ignored resources count here, too."""
        offered = node_amounts(node.status.allocatable)
        if offered.get(PODS, 0) < 1:
            return False
        return all(
            amount <= offered.get(name, 0) or self._is_delegated(name, offered)
            for name, amount in requests.items()
            if amount > 0
        )

    def _has_grown(self, requests: dict[str, int], before: Node, after: Node) -> bool:
        """Return whether a node now allows more pods, has more of a requested resource, or devices serve one."""
        offered, earlier = node_amounts(after.status.allocatable), node_amounts(before.status.allocatable)
        if offered.get(PODS, 0) > earlier.get(PODS, 0):
            return True
        return any(
            offered.get(name, 0) > earlier.get(name, 0) or self._is_delegated(name, offered)
            for name, amount in requests.items()
            if amount > 0
        )

    def _is_delegated(self, name: str, offered: dict[str, int]) -> bool:
        """Return whether devices provide a resource on a node that does not have it itself."""
        if self._device_classes is None or not is_scalar(name) or offered.get(name, 0) > 0:
            return False
        return self._device_classes.get(name) is not None

    @hint(DeviceClass, new=True)
    def is_schedulable_after_device_class_event(self, pod: Pod, before: DeviceClass | None, after: DeviceClass) -> bool:
        """Queue the pod if it requests the resource that a device class now serves."""
        requests = pod_requests(pod, RequestOptions())
        claimed = after.spec.extended_resource_name
        if before is not None:
            # The name of a class, and with it the implicit resource, never changes.
            if (before.spec.extended_resource_name or "") == (claimed or ""):
                return False
        elif DEVICE_CLASS_PREFIX + after.metadata.name in requests:
            return True
        return claimed is not None and claimed in requests


class FreeResourcesRule(FilterRule):
    """Compares requests with free resources; a verdict has one bit per request that does not fit.

    Args:
        spec: the spec of the pod.
        numbered: the number of each set of short resources, for pods with more requests than a verdict has bits; filled
            by the rule.
        cluster: the state.
    """

    def __init__(self, spec: NodeResourcesFitSpec, numbered: dict[Shortage, int], cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._requests = spec.requests
        self._numbered = numbered
        # Whether DynamicResources, instead of this rule, checks a request on nodes without the resource.
        self._delegated = [False] * len(spec.requests)
        self._seen: Params | None = ()

    def refresh(self) -> bool:
        """Record the requests that a device class may serve, which PreFilter found."""
        if self.params is not self._seen:
            self._seen = self.params
            served = self.params or ()
            self._delegated = [request.number in served for request in self._requests]
        return False

    def filter(self, row: int) -> int:
        """Return the flags of all requests that exceed the free amount; with many requests, the number of their set."""
        if self.params is None:
            return STATE_MISSING
        if len(self._requests) > MAX_FLAGS:
            return self._number(row)
        columns = self.columns
        verdict = TOO_MANY_PODS if columns.usage[POD_COUNT, row] >= columns.allowed_pods[row] else 0
        for place in range(len(self._requests)):
            verdict |= flag_on_row(columns, self._requests[place], self._delegated[place], row)
        return verdict

    def filter_all(self, codes: Codes) -> None:
        """Write the verdicts of all rows, request by request, in loops that the compiler vectorises."""
        columns = self.columns
        if self.params is None or len(self._requests) > MAX_FLAGS:
            FilterRule.filter_all(self, codes)
            return
        found, pods, allowed = columns.scratch_integers, columns.usage[POD_COUNT], columns.allowed_pods
        for start in range(0, columns.count, CHUNK):
            length = min(CHUNK, columns.count - start)
            for i in range(length):
                found[i] = TOO_MANY_PODS if pods[start + i] >= allowed[start + i] else 0
            for place in range(len(self._requests)):
                self._add_lacking(place, start, length)
            for i in range(length):
                codes[start + i] = found[i]

    def _add_lacking(self, place: int, start: int, length: int) -> None:
        """Add the flag of one request to the verdicts of `length` rows."""
        request: Request = self._requests[place]
        columns, found = self.columns, self.columns.scratch_integers
        amount, flag, delegated = request.amount, request.flag, self._delegated[place]
        allocatable, used = columns.allocatable[request.number], columns.usage[FIRST_RESOURCE + request.number]
        for i in range(length):
            found[i] |= insufficient_flag(amount, flag, delegated, allocatable[start + i], used[start + i])

    def _number(self, row: int) -> int:
        """Return the number of the set of resources that are short on a node; 0 if none is."""
        columns = self.columns
        lacking = [int(columns.usage[POD_COUNT, row] >= columns.allowed_pods[row])]
        for place in range(len(self._requests)):
            lacking.append(flag_on_row(columns, self._requests[place], self._delegated[place], row))
        if not any(lacking):
            return 0
        shortage = tuple([bool(flags) for flags in lacking])
        known = self._numbered.setdefault(shortage, len(self._numbered) + 1)
        if known > MAX_PLUGIN_CODE:
            raise InvariantError(f"{known} sets of resources were short for one pod")
        return known | (UNRESOLVABLE_BIT if any(flags & UNRESOLVABLE_BIT for flags in lacking) else 0)


def flag_on_row(columns: Columns, request: Request, delegated: bool, row: int) -> int:
    """Return the flag of one request for a row."""
    allocatable, used = columns.allocatable[request.number, row], columns.usage[FIRST_RESOURCE + request.number, row]
    return insufficient_flag(request.amount, request.flag, delegated, allocatable, used)


def insufficient_flag(amount: int, flag: int, delegated: bool, allocatable: int, used: int) -> int:
    """Return the flag of a request that exceeds a node's free amount, else 0.

    `UNRESOLVABLE_BIT` is added if the request exceeds the allocatable amount. A delegated request passes on a node
    without the resource.
    """
    verdict = flag | (UNRESOLVABLE_BIT if amount > allocatable else 0)
    verdict = verdict if amount > go.sub(allocatable, used) else 0
    return 0 if delegated and allocatable <= 0 else verdict
