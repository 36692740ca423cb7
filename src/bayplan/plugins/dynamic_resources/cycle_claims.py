"""The claims of one pod in one state of the cluster, and PreFilter, which finds them and checks if they can be allocated.

All cycles of a pod use the same object until data on which it depends changes; until then, cached verdicts stay valid.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import msgspec

from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import SKIP, Status, error, unresolvable
from bayplan.objects.pod import Pod
from bayplan.objects.resource import DeviceClass, DeviceRequest, ResourceClaim
from bayplan.objects.selectors import CompiledNodeSelector, compile_node_selector
from bayplan.plugins.dynamic_resources.claim_binding import binding_deadline_ns, binding_failed
from bayplan.plugins.dynamic_resources.claims import ClaimsUnusable, ClaimTracker, pod_claims, uid_of
from bayplan.plugins.dynamic_resources.extended_resources import (
    is_served_by_devices,
    make_special_claim,
    owners_of_special_claim,
    requested_resources,
)
from bayplan.plugins.dynamic_resources.features import AllocationFeatures
from bayplan.plugins.verdict_texts import VerdictTexts
from bayplan.state.device_classes import DeviceClassResolver
from bayplan.state.object_catalog import ObjectCatalog, ObjectGroups


class Variant(msgspec.Struct, frozen=True, eq=False):
    """The claims to allocate on nodes of one kind; `signature` identifies their requests."""

    claims: tuple[ResourceClaim, ...]
    signature: bytes


class CycleClaims:
    """The plugin's data about a pod's claims.

    Attributes:
        token: identifies all data on which this object depends.
        claims: the claims of the pod's spec, then the special claim for extended resources.
        special: the special claim, or None.
        resources: the extended resources that the pod requests.
        available_on: for each claim, the nodes that can use its allocation; None for all.
        unready: the indexes of claims whose devices can't be bound, because of their conditions or a timeout.
        expires_ns: when the next device times out; None for never.
        answer: the result of PreFilter.
        texts: the messages of verdicts.
        variants: the claims to allocate, by the resources that a node lacks.
    """

    def __init__(self, token: Hashable, pod: Pod) -> None:
        self.token = token
        self.pod = pod
        self.claims: Sequence[ResourceClaim] = ()
        self.special: ResourceClaim | None = None
        self.resources: Sequence[str] = ()
        self.available_on: list[CompiledNodeSelector | None] = []
        self.unready: frozenset[int] = frozenset()
        self.expires_ns: int | None = None
        self.answer: PreFilterResult | Status = SKIP
        self.texts = VerdictTexts()
        self.variants: dict[tuple[str, ...], Variant] = {}

    @property
    def wants_allocation(self) -> bool:
        """Return whether at least one claim is not allocated."""
        return any(claim.status.allocation is None for claim in self.claims)

    def to_allocate(self) -> Iterator[tuple[int, ResourceClaim]]:
        """Yield the claims without allocation, each with its index."""
        return ((place, claim) for place, claim in enumerate(self.claims) if claim.status.allocation is None)


class Preparation:
    """PreFilter: finds the claims of a pod, and checks them.

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
        self._special_claims = ObjectGroups(catalog, ResourceClaim, owners_of_special_claim)
        self._classes = classes
        self._features = features
        self._binding_timeout_ns = binding_timeout_ns

    def prepare(self, cycle: CycleClaims, now_ns: int) -> None:
        """Set the claims of a cycle and the result of PreFilter."""
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
        if self._features.binding_conditions:
            self._check_conditions(cycle, now_ns)
        cycle.answer = PreFilterResult((cycle,))

    def _find_special_claim(self, pod: Pod) -> ResourceClaim | None:
        """Return the special claim that an earlier attempt created for a pod, the oldest if there are several; or None."""
        keys = self._special_claims.keys((pod.metadata.name, pod.metadata.uid))
        if len(keys) > 1:
            keys = [key for key in self._catalog.keys(ResourceClaim) if key in keys]
        return next(map(self._tracker.get, keys), None)

    def _check_claim(self, claim: ResourceClaim, *, is_special: bool) -> Status | None:
        """Return why a claim can't be allocated now, or None."""
        if self._tracker.pending_allocation(uid_of(claim)) is not None:
            return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
        if is_special:
            return None
        statuses = (self._check_request(claim, request) for request in claim.spec.devices.requests)
        return next((status for status in statuses if status is not None), None)

    def _check_request(self, claim: ResourceClaim, request: DeviceRequest) -> Status | None:
        if request.exactly is not None:
            return self._check_class(request.exactly.device_class_name, request.name)
        where = f"resource claim {claim.key}, request {request.name}"
        if not request.first_available:
            return unresolvable(f"{where}: unknown request type")
        if not self._features.prioritized_list:
            return unresolvable(f"{where}: has subrequests, but the DRAPrioritizedList feature is disabled")
        statuses = (
            self._check_class(alternative.device_class_name, f"{request.name}/{alternative.name}")
            for alternative in request.first_available
        )
        return next((status for status in statuses if status is not None), None)

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
            if failed is False:
                continue
            deadline_ns = None if failed else binding_deadline_ns(claim, self._binding_timeout_ns)
            if failed or (deadline_ns is not None and deadline_ns < now_ns):
                unready.add(place)
            elif deadline_ns is not None and (cycle.expires_ns is None or deadline_ns < cycle.expires_ns):
                cycle.expires_ns = deadline_ns
        cycle.unready = frozenset(unready)
