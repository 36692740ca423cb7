"""The plugin DynamicResources: PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind, and its hints."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from bayplan.framework.configuration.plugin_arguments import DynamicResourcesArgs, binding_conditions_enabled
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import (
    FilterPlugin,
    Handle,
    NormalizePlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    ReservePlugin,
)
from bayplan.framework.rule import Params, ScoreRule
from bayplan.framework.status import ERROR_BIT, SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.resource import DeviceClass, ResourceClaim
from bayplan.objects.selectors import CompiledNodeSelector, compile_node_selector
from bayplan.plugins.dynamic_resources.claim_binding import (
    BindingFailed,
    allocated_claim,
    allocation_of,
    binding_deadline_ns,
    binding_failed,
    bound_claim,
    deallocated_claim,
    result_document,
)
from bayplan.plugins.dynamic_resources.claims import ClaimsUnusable, ClaimTracker, is_reserved_for, pod_claims, uid_of
from bayplan.plugins.dynamic_resources.cycle_claims import CycleClaims
from bayplan.plugins.dynamic_resources.extended_resources import (
    IN_MEMORY_NAME,
    is_served_by_devices,
    make_special_claim,
    owners_of_special_claim,
    requested_resources,
    requests_extended,
)
from bayplan.plugins.dynamic_resources.node_allocator import NodeAllocator
from bayplan.plugins.dynamic_resources.node_filter import NodeFilter
from bayplan.plugins.dynamic_resources.pools import AllocationFailed
from bayplan.plugins.normalize_score import StretchedArrayRule
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.object_catalog import ObjectGroups
from bayplan.state.views import Rows

STATE_KEY = "DynamicResources"
RESERVED_KEY = "DynamicResources/reserved"
"""Cycle state key of the claims with the allocations that Reserve chose, by index in the cycle's claims."""

UPDATES_KEY = "DynamicResources/updates"
NO_CLAIMS = "no new claims to deallocate"
NOT_FOUND = "not found"
STATE_MISSING = 1 | ERROR_BIT


@dataclass(slots=True)
class DynamicResourcesSpec:
    """The spec: the pod, or None for pods without claims, which share all results.

    Attributes:
        cycle: the data about the pod's claims in its last cycle.
    """

    key: Hashable
    pod: Pod | None = field(compare=False)
    cycle: CycleClaims | None = field(default=None, compare=False)


WITHOUT_CLAIMS = DynamicResourcesSpec((), None)


class DynamicResources(
    PreEnqueuePlugin[DynamicResourcesSpec],
    PreFilterPlugin[DynamicResourcesSpec],
    FilterPlugin[DynamicResourcesSpec],
    PostFilterPlugin[DynamicResourcesSpec],
    NormalizePlugin[DynamicResourcesSpec],
    ReservePlugin[DynamicResourcesSpec],
    PreBindPlugin[DynamicResourcesSpec],
):
    """Rejects nodes where a pod's claims can't be allocated or used. Arguments: `DynamicResourcesArgs`."""

    name = "DynamicResources"
    binds_skipped_pods = False
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        given = arguments if isinstance(arguments, DynamicResourcesArgs) else DynamicResourcesArgs()
        gates, catalog = handle.feature_gates, handle.cluster.catalog
        self._prioritized_list = gates.enabled("DRAPrioritizedList")
        self._tracker = ClaimTracker(catalog)
        classes = DeviceClassResolver(catalog)
        self._classes = classes if gates.enabled("DRAExtendedResource") else None
        self.sums_in_pre_filter = int(gates.enabled("DRAExtendedResource"))
        self._allocator = NodeAllocator(handle.cluster, self._tracker, gates)
        self._special_claims = ObjectGroups(catalog, ResourceClaim, owners_of_special_claim)
        self._binding_timeout_ns = given.binding_timeout_ns
        self._node_filter = NodeFilter(handle.cluster, self._allocator, classes)
        # Whether the profile runs PreFilter; without it, later extension points find no state.
        self._pre_filters = False

    def signs(self, spec: PodSpec) -> bool:
        """Return True only for pods with claims, or with requests for resources that devices may serve."""
        return bool(spec.resource_claims) or requests_extended(spec)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return a unique identifier for a pod with claims, None for a pod without."""
        if not pod.spec.resource_claims and not is_served_by_devices(pod, self._classes):
            return None
        return (pod.metadata.name, pod.metadata.uid, pod.status.resource_claim_statuses)

    def compile(self, pod: Pod, cluster: ClusterState) -> DynamicResourcesSpec:
        """Return the pod as its spec if it has claims."""
        sign = self.sign_pod(pod)
        if sign is None:
            return WITHOUT_CLAIMS
        return DynamicResourcesSpec((pod.metadata.namespace, sign, pod.spec.resource_claims), pod)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Gate a pod until all its claims exist and are its own."""
        if not pod.spec.resource_claims:
            return SUCCESS
        try:
            pod_claims(pod, self._tracker)
        except ClaimsUnusable as problem:
            return unresolvable(str(problem))
        return SUCCESS

    # PreFilter and Filter.

    def pre_filter_reads(self, spec: DynamicResourcesSpec) -> Reads:
        """Return NOTHING for pods without claims, which PreFilter skips."""
        return Reads.NOTHING if spec.pod is None else Reads.OBJECTS

    def pre_filter(
        self, spec: DynamicResourcesSpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Find the pod's claims; reject the pod if they can't be allocated on any node. Return SKIP if it has none."""
        self._pre_filters = True
        if spec.pod is None:
            return SKIP
        self._allocator.refresh()
        cycle = spec.cycle = CycleClaims(spec.pod)
        self._prepare(cycle, state.now_ns)
        state.write(STATE_KEY, cycle)
        return cycle.answer

    def _prepare(self, cycle: CycleClaims, now_ns: int) -> None:
        """Find and check the claims of a cycle, and set the result of PreFilter."""
        pod, special = cycle.pod, None
        try:
            claims = list(pod_claims(pod, self._tracker))
        except ClaimsUnusable as problem:
            cycle.answer = unresolvable(str(problem))
            return
        if is_served_by_devices(pod, self._classes):
            special = self._find_special_claim(pod) or make_special_claim(pod)
            claims.append(special)
        if not claims:
            return
        available_on: list[CompiledNodeSelector | None] = []
        for claim in claims:
            allocation, selector, status = claim.status.allocation, None, None
            if allocation is None:
                status = self._check_claim(claim, is_special=claim is special)
            elif allocation.node_selector is not None:
                selector = compile_node_selector(allocation.node_selector)
                status = error(selector.error) if selector.error else None
            if status is not None:
                cycle.answer = status
                return
            available_on.append(selector)
        cycle.claims, cycle.special, cycle.available_on = claims, special, available_on
        cycle.resources = requested_resources(pod) if special is not None else ()
        if binding_conditions_enabled(self.handle.feature_gates):
            self._check_conditions(cycle, now_ns)
        cycle.answer = PreFilterResult((cycle,))

    def _find_special_claim(self, pod: Pod) -> ResourceClaim | None:
        """Return the special claim that an earlier attempt created for a pod, the oldest if there are several; or None."""
        keys = self._special_claims.keys((pod.metadata.name, pod.metadata.uid))
        if len(keys) > 1:
            keys = [key for key in self.handle.cluster.catalog.keys(ResourceClaim) if key in keys]
        return next(map(self._tracker.get, keys), None)

    def _check_claim(self, claim: ResourceClaim, *, is_special: bool) -> Status | None:
        """Return why a claim can't be allocated now, or None."""
        if self._tracker.pending_allocation(uid_of(claim)) is not None:
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        return None if is_special else next(self._problems(claim), None)

    def _problems(self, claim: ResourceClaim) -> Iterator[Status]:
        """Yield why the requests of a claim can't be allocated on any node."""
        catalog = self.handle.cluster.catalog
        for request in claim.spec.devices.requests:
            where = f"resource claim {claim.key}, request {request.name}"
            classes = [(f"{request.name}/{item.name}", item.device_class_name) for item in request.first_available]
            if request.exactly is not None:
                classes = [(request.name, request.exactly.device_class_name)]
            elif not classes:
                yield unresolvable(f"{where}: unknown request type")
            elif not self._prioritized_list:
                yield unresolvable(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
            for name, class_name in classes:
                if not class_name:
                    yield error(f"request {name}: unsupported request type")
                elif catalog.get(DeviceClass, class_name) is None:
                    yield unresolvable(f"request {name}: device class {class_name} does not exist")

    def _check_conditions(self, cycle: CycleClaims, now_ns: int) -> None:
        """Record the claims whose devices failed or missed their deadline."""
        unready = set[int]()
        for place, claim in enumerate(cycle.claims):
            failed = binding_failed(claim)
            if failed is False:
                continue
            deadline_ns = None if failed else binding_deadline_ns(claim, self._binding_timeout_ns)
            if failed or (deadline_ns is not None and deadline_ns < now_ns):
                unready.add(place)
        cycle.unready = frozenset(unready)

    def filter(self, spec: DynamicResourcesSpec, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes on which the claims can't be allocated or used; an error everywhere if PreFilter is disabled.

        Devices are searched once for all nodes.
        """
        if params is None:
            return rows.verdicts((rows.everywhere(True), STATE_MISSING))
        (cycle,) = params
        assert isinstance(cycle, CycleClaims)
        return rows.select(self._node_filter.verdicts(cycle))

    def reasons(self, spec: DynamicResourcesSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the text of a verdict."""
        if params is None:
            return (NOT_FOUND,)
        (cycle,) = params
        assert isinstance(cycle, CycleClaims)
        return (cycle.texts.text(verdict),)

    # PostFilter.

    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        """Deallocate an unused claim that made nodes infeasible; the pod itself stays unschedulable.

        Return an Error if PreFilter was not reached, as upstream does.
        """
        if not self._pre_filters or self.name in state.unreached_pre_filters:
            return None, error(NOT_FOUND)
        cycle = state.read(STATE_KEY, CycleClaims)
        if cycle is None or not cycle.claims:
            return None, unschedulable(NO_CLAIMS)
        special = cycle.special
        is_stale = special is not None and special.metadata.name != IN_MEMORY_NAME
        for place in self._claims_rejecting_nodes(cycle, diagnosis):
            claim = cycle.claims[place]
            if claim is special:
                if is_stale:
                    break
                continue
            users = claim.status.reserved_for
            if not users or (len(users) == 1 and users[0].uid == pod.metadata.uid):
                # Upstream chooses among several claims at random.
                state.write(UPDATES_KEY, (deallocated_claim(claim),))
                return None, unschedulable("deallocation of ResourceClaim completed")
        if is_stale:
            return None, unschedulable("deletion of ResourceClaim completed")
        return None, unschedulable("still not schedulable")

    def _claims_rejecting_nodes(self, cycle: CycleClaims, diagnosis: Diagnosis) -> list[int]:
        """Return the indexes of the claims that made this filter reject nodes which all earlier filters accepted."""
        if self.name not in diagnosis.filters:
            return []
        mine = diagnosis.filters.index(self.name)
        found = set[int]()
        nodes = self.handle.cluster.nodes.nodes
        for row in np.flatnonzero(diagnosis.examined & (diagnosis.values >> 16 == mine)).tolist():
            node = nodes[row]
            if node is not None:
                found.update(self._node_filter.unavailable(cycle, node, int(diagnosis.values[row]) & 0xFFFF))
        return sorted(found)

    # Score.

    def score_reads(self, spec: DynamicResourcesSpec) -> Reads:
        """Return OBJECTS for pods whose claims may list alternatives: they are scored in every cycle."""
        return Reads.OBJECTS if spec.pod is not None and spec.pod.spec.resource_claims else self.reads

    def score_rule(self, spec: DynamicResourcesSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule with which the largest score becomes 100."""
        return StretchedArrayRule(self, spec, cluster)

    def score(self, spec: DynamicResourcesSpec, params: Params | None, rows: Rows) -> Ints:
        """Score nodes by the rank of the alternatives that would be allocated for the claims of the current cycle."""
        if spec.cycle is None or not self._prioritized_list:
            return np.zeros(len(rows), dtype=np.int64)
        return rows.select(self._node_filter.preferences(spec.cycle))

    def score_error(self, spec: DynamicResourcesSpec, params: Params | None) -> str:
        """Return an error if PreFilter did not run, as upstream does."""
        return "" if self._pre_filters or not self._prioritized_list else NOT_FOUND

    # Reserve and PreBind.

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Record the allocations that Filter found for the node as in flight."""
        cycle = state.read(STATE_KEY, CycleClaims)
        if cycle is None:
            return SUCCESS if self._pre_filters else error(NOT_FOUND)
        wanted = list(cycle.to_allocate())
        if not wanted:
            return SUCCESS
        row = self.handle.cluster.nodes.row_of.get(node_name)
        allocation = self._node_filter.allocation(cycle, row) if row is not None else None
        if allocation is None or not allocation[1]:
            # There is nothing to allocate if the node itself has the extended resources.
            served = all(claim is cycle.special for _, claim in wanted)
            return SUCCESS if served else error("claim allocation not found for node")
        variant, parts = allocation
        claims: dict[int, ResourceClaim] = {}
        try:
            for (place, _), claim, chosen in zip(wanted, variant.claims, parts, strict=True):
                result = allocation_of(claim, chosen, node_name, self.handle.feature_gates)
                claims[place] = allocated_claim(claim, msgspec.structs.replace(claim.status, allocation=result))
        except AllocationFailed as problem:
            return error(str(problem))
        for claim in claims.values():
            self._tracker.signal(claim)
        state.write(RESERVED_KEY, claims)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Release the allocations that Reserve recorded as in flight, and revert the claims that PreBind wrote."""
        for claim in _reserved_claims(state).values():
            self._tracker.release(uid_of(claim))
            self._tracker.restore(claim.key)
        state.delete(RESERVED_KEY)
        for item in state.read(UPDATES_KEY, tuple) or ():
            self._tracker.restore(item.key)
        state.delete(UPDATES_KEY)

    def reserved(self, state: CycleState) -> Mapping[str, object]:
        """Return ``devices``: for each claim of the pod's spec, the allocated devices of its requests."""
        if state.read(RESERVED_KEY, dict) is None:
            return {}
        devices: dict[str, object] = {}
        for claim in _reserved_claims(state).values():
            if claim.metadata.name != IN_MEMORY_NAME and claim.status.allocation is not None:
                # If a pod refers to a claim twice, the first allocation is the one in flight.
                devices.setdefault(
                    claim.key, [result_document(item) for item in claim.status.allocation.devices.results]
                )
        return {"devices": devices}

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Assume the claims with their allocation and the pod in their reservedFor; the host writes them (`updates`)."""
        cycle = state.read(STATE_KEY, CycleClaims)
        if cycle is None:
            return SUCCESS if self._pre_filters else error(NOT_FOUND)
        chosen = _reserved_claims(state)
        written, special_key = [], ""
        timestamp = binding_conditions_enabled(self.handle.feature_gates)
        try:
            for place, claim in enumerate(cycle.claims):
                if is_reserved_for(pod, claim) or (claim is cycle.special and place not in chosen):
                    continue
                current = chosen.get(place, claim)
                bound = bound_claim(current, pod, state.now_ns, timestamp=timestamp)
                written.append(bound)
                if current.metadata.name == IN_MEMORY_NAME:
                    special_key = bound.key
        except BindingFailed as problem:
            return error(str(problem))
        for claim in written:
            self._tracker.assume(claim)
        for claim in chosen.values():
            if claim.metadata.name != IN_MEMORY_NAME:
                self._tracker.release(uid_of(claim), force=True)
            else:
                # The special claim has no assumed version: it stays in flight until it exists in the cluster.
                self._tracker.write(uid_of(claim), special_key)
        state.write(UPDATES_KEY, tuple(written))
        return SUCCESS

    def updates(self, state: CycleState) -> Sequence[KubernetesObject]:
        """Return the claims that the host must write: after PreBind, the pod's; after PostFilter, one to deallocate."""
        return state.read(UPDATES_KEY, tuple) or ()

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register claims, device classes, slices, nodes, and pods whose claims were created."""
        changes = ActionType.ADD | ActionType.UPDATE
        node_changes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        return (
            (ClusterEvent(EventResource.NODE, node_changes), None),
            (ClusterEvent(EventResource.RESOURCE_CLAIM, changes), self.is_schedulable_after_claim_change),
            (
                ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM),
                self.is_schedulable_after_pod_change,
            ),
            (ClusterEvent(EventResource.DEVICE_CLASS, changes), None),
            (ClusterEvent(EventResource.RESOURCE_SLICE, changes), None),
        )

    @hint(ResourceClaim, new=True)
    def is_schedulable_after_claim_change(self, pod: Pod, before: ResourceClaim | None, after: ResourceClaim) -> bool:
        """Queue a pod whose claims all exist, if one is new or changed its status, or any claim was deallocated."""
        try:
            claims = pod_claims(pod, self._tracker)
        except ClaimsUnusable:
            return False
        if before is not None and before.status.allocation is not None and after.status.allocation is None:
            return True
        is_own = any(uid_of(claim) == uid_of(after) for claim in claims)
        return is_own and (before is None or before.status != after.status)

    @hint(Pod, new=True)
    def is_schedulable_after_pod_change(self, pod: Pod, before: Pod | None, after: Pod) -> bool:
        """Queue the pod if it is the changed pod, and all its claims exist now."""
        if pod.metadata.uid != after.metadata.uid:
            return False
        try:
            pod_claims(after, self._tracker)
        except ClaimsUnusable:
            return False
        return True


def _reserved_claims(state: CycleState) -> dict[int, ResourceClaim]:
    return state.read(RESERVED_KEY, dict) or {}
