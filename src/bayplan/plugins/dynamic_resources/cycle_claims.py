"""The claims of one pod in one state of the cluster, and PreFilter, which finds them and checks if they can be allocated.

All cycles of a pod use the same object until data on which it depends changes; until then, cached verdicts stay valid.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status, error, unresolvable
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.resource import DeviceClass, DeviceRequest, ResourceClaim
from bayplan.objects.resource_names import is_dra_extended
from bayplan.objects.selectors import CompiledNodeSelector, compile_node_selector
from bayplan.plugins.dynamic_resources.claim_binding import binding_deadline_ns, binding_failed
from bayplan.plugins.dynamic_resources.claims import ClaimsUnusable, ClaimTracker, pod_claims, uid_of
from bayplan.plugins.dynamic_resources.extended_resources import (
    NodeRequests,
    find_special_claim,
    make_special_claim,
    owners_of_special_claim,
    requested_resources,
)
from bayplan.plugins.dynamic_resources.features import AllocationFeatures
from bayplan.plugins.dynamic_resources.node_allocator import preference
from bayplan.state.arrays import Codes, Index
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.object_catalog import ObjectCatalog
from bayplan.state.resource_table import FIRST_RESOURCES


class Variant(msgspec.Struct, frozen=True, eq=False):
    """The claims to allocate on nodes of one kind.

    Attributes:
        signature: identifies the requests of the claims.
        requests: the requests of the special claim, or None without one.
    """

    claims: tuple[ResourceClaim, ...]
    signature: bytes
    requests: NodeRequests | None


class NodeVerdicts(NamedTuple):
    """The verdicts on all nodes.

    Attributes:
        version: the versions of nodes and device allocations from which the verdicts were computed.
        codes: uint16[capacity], the verdicts.
        kinds: intp[capacity], the kind of each node, an index of `lacking`; -1 if the node lacks a resource for which
            there is no device class.
        lacking: for each kind, the resources that its nodes can provide only as devices.
    """

    version: tuple[int, int, int]
    codes: Codes
    kinds: Index
    lacking: list[tuple[str, ...]]


class CycleClaims:
    """The plugin's data about a pod's claims.

    Attributes:
        token: identifies all data on which this object depends.
        pod: the pod.
        claims: the claims of the pod's spec, then the special claim for extended resources.
        special: the special claim, or None.
        resources: the extended resources that the pod requests, with amounts.
        available_on: for each claim, the nodes that can use its allocation; None for all.
        unready: the indexes of claims whose devices can't be bound, because of their conditions or a timeout.
        expires_ns: when the next device times out; None for never.
        answer: the result of PreFilter.
        verdicts: the verdicts on nodes, or None.
        variants: the claims to allocate with their signature, by the set of resources that a node lacks.
    """

    def __init__(self, token: Hashable, pod: Pod) -> None:
        self.token = token
        self.pod = pod
        self.claims: Sequence[ResourceClaim] = ()
        self.special: ResourceClaim | None = None
        self.resources: dict[str, int] = {}
        self.available_on: list[CompiledNodeSelector | None] = []
        self.unready: frozenset[int] = frozenset()
        self.expires_ns: int | None = None
        self.answer: PreFilterResult | Status = SKIP
        self.verdicts: NodeVerdicts | None = None
        self.variants: dict[tuple[str, ...], Variant] = {}
        # The message of each verdict, without the code bits.
        self._texts: list[str] = [""]

    @property
    def params(self) -> tuple[Hashable, ...]:
        """Return the params of Filter and Score."""
        return (self,)

    @property
    def wants_allocation(self) -> bool:
        """Return whether at least one claim is not allocated."""
        return any(claim.status.allocation is None for claim in self.claims)

    def to_allocate(self) -> Iterator[tuple[int, ResourceClaim]]:
        """Yield the claims without allocation, each with its index."""
        return ((place, claim) for place, claim in enumerate(self.claims) if claim.status.allocation is None)

    def verdict(self, text: str, *, fatal: bool = False) -> int:
        """Return the verdict with this message: Error if `fatal`, else UnschedulableAndUnresolvable."""
        bits = ERROR_BIT if fatal else UNRESOLVABLE_BIT
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text) | bits

    def text_of(self, verdict: int) -> str:
        """Return the message of a verdict."""
        return self._texts[verdict & ~(ERROR_BIT | UNRESOLVABLE_BIT)]

    def preference_of_allocated(self) -> int:
        """Return the score that already allocated claims add on every node."""
        return sum(
            preference(claim, {result.request for result in claim.status.allocation.devices.results})
            for claim in self.claims
            if claim.status.allocation is not None
        )


class Reservation(msgspec.Struct, frozen=True, eq=False):
    """The result of Reserve.

    `claims`: by index in the cycle's claims, the claims with their allocation. `requests`: the requests of the special
    claim.
    """

    node_name: str
    claims: dict[int, ResourceClaim]
    requests: NodeRequests | None


def is_served_by_devices(pod: Pod, classes: DeviceClassResolver | None) -> bool:
    """Return whether a device class serves any resource of which the pod requests more than 0.

    `classes` is None if the feature gate DRAExtendedResource is disabled.
    """
    if not classes or not requests_extended(pod.spec):
        return False
    return any(classes.get(name) is not None for name in requested_resources(pod))


def requests_extended(spec: PodSpec) -> bool:
    """Return whether a pod requests extended resources that devices may serve. Fast, because few pods do."""
    listed = [container.resources.requests for container in (*spec.init_containers, *spec.containers)]
    if spec.overhead:
        listed.append(spec.overhead)
    if spec.resources is not None:
        listed.append(spec.resources.requests)
    for requests in listed:
        for name in requests:
            if name not in FIRST_RESOURCES and is_dra_extended(name):
                return True
    return False


class SpecialClaims:
    """The special claims of a cluster by owner, updated from the claims written since the last call."""

    def __init__(self, tracker: ClaimTracker) -> None:
        self._tracker = tracker
        self._seen: tuple[int, int, int] | None = None
        self._owners: dict[str, list[tuple[str, str]]] = {}
        self._keys: dict[tuple[str, str], dict[str, None]] = {}

    def find(self, pod: Pod) -> ResourceClaim | None:
        """Return the special claim of a pod, or None."""
        self._refresh()
        keys = self._keys.get((pod.metadata.name, pod.metadata.uid), {})
        if len(keys) > 1:
            # Return the claim that was added first.
            return find_special_claim(pod, self._tracker.all())
        for key in keys:
            return self._tracker.get(key)
        return None

    def _refresh(self) -> None:
        tracker, seen = self._tracker, self._seen
        if tracker.version == seen:
            return
        changed = tracker.changed_since(seen) if seen is not None else None
        self._seen = tracker.version
        if changed is None:
            self._owners.clear()
            self._keys.clear()
        for key in [claim.key for claim in tracker.all()] if changed is None else changed[0]:
            for owner in self._owners.pop(key, ()):
                del self._keys[owner][key]
                if not self._keys[owner]:
                    del self._keys[owner]
            claim = tracker.get(key)
            owners = owners_of_special_claim(claim) if claim is not None else []
            if owners:
                self._owners[key] = owners
                for owner in owners:
                    self._keys.setdefault(owner, {})[key] = None


class Preparation:
    """Prepares the claims of a cycle.

    Args:
        catalog, tracker: the cluster's objects and claims.
        classes: the device classes of extended resources; None if the feature gate DRAExtendedResource is disabled.
        features: the enabled features.
        binding_timeout_ns: the time within which devices must become ready; None for no limit.
    """

    def __init__(
        self,
        catalog: ObjectCatalog,
        tracker: ClaimTracker,
        classes: DeviceClassResolver | None,
        features: AllocationFeatures,
        binding_timeout_ns: int | None,
    ) -> None:
        self._catalog = catalog
        self._tracker = tracker
        self._special_claims = SpecialClaims(tracker)
        self._classes = classes
        self._features = features
        self._binding_timeout_ns = binding_timeout_ns

    def prepare(self, cycle: CycleClaims, now_ns: int) -> None:
        """Set the claims of a cycle and the result of PreFilter."""
        pod = cycle.pod
        try:
            claims = list(pod_claims(pod, self._tracker))
        except ClaimsUnusable as problem:
            cycle.answer = unresolvable(str(problem))
            return
        special = self._special_claim(pod)
        if special is not None:
            claims.append(special)
        if not claims:
            cycle.answer = SKIP
            return
        available_on: list[CompiledNodeSelector | None] = [None] * len(claims)
        for place, claim in enumerate(claims):
            allocation = claim.status.allocation
            if allocation is None:
                status = self._check_claim(claim, is_special=claim is special)
            else:
                status = None
                if allocation.node_selector is not None:
                    available_on[place] = compile_node_selector(allocation.node_selector)
                    text = available_on[place].error  # type: ignore[union-attr]
                    status = error(text) if text else None
            if status is not None:
                cycle.answer = status
                return
        cycle.claims, cycle.special, cycle.available_on = claims, special, available_on
        cycle.resources = requested_resources(pod) if special is not None else {}
        if self._features.binding_conditions:
            self._check_conditions(cycle, now_ns)
        cycle.answer = PreFilterResult(cycle.params)

    def _special_claim(self, pod: Pod) -> ResourceClaim | None:
        if not is_served_by_devices(pod, self._classes):
            return None
        return self._special_claims.find(pod) or make_special_claim(pod)

    def _check_claim(self, claim: ResourceClaim, *, is_special: bool) -> Status | None:
        """Return why a claim can't be allocated now, or None."""
        if self._tracker.pending_allocation(uid_of(claim)) is not None:
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if is_special:
            return None
        for request in claim.spec.devices.requests:
            status = self._check_request(claim, request)
            if status is not None:
                return status
        return None

    def _check_request(self, claim: ResourceClaim, request: DeviceRequest) -> Status | None:
        if request.exactly is not None:
            return self._check_class(request.exactly.device_class_name, request.name)
        where = f"resource claim {claim.key}, request {request.name}"
        if not request.first_available:
            return unresolvable(f"{where}: unknown request type")
        if not self._features.prioritized_list:
            return unresolvable(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
        for alternative in request.first_available:
            status = self._check_class(alternative.device_class_name, f"{request.name}/{alternative.name}")
            if status is not None:
                return status
        return None

    def _check_class(self, name: str, request: str) -> Status | None:
        if not name:
            return error(f"request {request}: unsupported request type")
        if self._catalog.get(DeviceClass, name) is None:
            return unresolvable(f"request {request}: device class {name} does not exist")
        return None

    def _check_conditions(self, cycle: CycleClaims, now_ns: int) -> None:
        """Record the claims whose devices failed or missed their deadline, and the next deadline of the others."""
        unready = set[int]()
        for place, claim in enumerate(cycle.claims):
            failed = binding_failed(claim)
            if failed:
                unready.add(place)
            elif failed is None:
                deadline_ns = binding_deadline_ns(claim, self._binding_timeout_ns)
                if deadline_ns is None:
                    continue
                if deadline_ns < now_ns:
                    unready.add(place)
                elif cycle.expires_ns is None or deadline_ns < cycle.expires_ns:
                    cycle.expires_ns = deadline_ns
        cycle.unready = frozenset(unready)
