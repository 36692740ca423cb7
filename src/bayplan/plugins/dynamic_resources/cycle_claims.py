"""The claims of one pod in one situation of the cluster: what PreFilter found, and what Filter adds node by node.

As long as nothing that matters changes, the same object stands for all cycles of a pod, and kept verdicts stay right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import msgspec

from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status
from bayplan.objects.pod import Pod
from bayplan.objects.resource import AllocationResult, ResourceClaim
from bayplan.objects.selectors import CompiledNodeSelector
from bayplan.plugins.dynamic_resources.allocator import ChosenClaim
from bayplan.plugins.dynamic_resources.extended_resources import NodeRequests

MAX_PREFERENCE = 8
"""So many alternatives a request can have: the first one is worth this much, each further one less."""


class NodeAllocation(msgspec.Struct, frozen=True, eq=False):
    """What would be allocated on a node.

    Attributes:
        claims: those to allocate, as they are for this node. chosen: their parts of the solution.
        requests: of the special claim, or None where it needs no devices.
    """

    claims: tuple[ResourceClaim, ...]
    chosen: tuple[ChosenClaim, ...]
    requests: NodeRequests | None


class Variant(msgspec.Struct, frozen=True, eq=False):
    """The claims to allocate, as they are for one kind of nodes; `signature` says what they ask for."""

    claims: tuple[ResourceClaim, ...]
    signature: bytes
    requests: NodeRequests | None


class CycleClaims:
    """What the plugin knows about a pod's claims.

    Attributes:
        token: says all that this was made of.
        pod: whose claims these are.
        claims: those of the pod's spec, then the special one for extended resources.
        special: that one, or None. resources: the extended resources that the pod asks for, with amounts.
        available_on: per claim the nodes from which its allocation can be used; None: all.
        unready: claims whose devices can't be bound, by their conditions or for too long.
        expires_ns: when the next device will have taken too long; None: never.
        answer: what PreFilter says.
        verdicts: texts by verdict, without the bits that say how bad it is.
        allocations: per row what would be allocated. unavailable: per row the claims that can't be used there.
        variants: per set of resources that a node lacks the claims to allocate there, with their signature.
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
        self.verdicts: dict[int, str] = {}
        self.allocations: dict[int, NodeAllocation] = {}
        self.unavailable: dict[int, tuple[int, ...]] = {}
        self.variants: dict[tuple[str, ...], Variant] = {}
        self._numbers: dict[str, int] = {}

    @property
    def params(self) -> tuple[Hashable, ...]:
        """Return the params of Filter and Score."""
        return (self,)

    def to_allocate(self) -> Iterator[tuple[int, ResourceClaim]]:
        """Iterate over the claims without allocation, with their places."""
        return ((place, claim) for place, claim in enumerate(self.claims) if claim.status.allocation is None)

    def verdict(self, text: str, *, fatal: bool = False) -> int:
        """Return the verdict for a text: an Error, or a rejection that no other pod's leaving lifts."""
        bits = ERROR_BIT if fatal else UNRESOLVABLE_BIT
        number = self._numbers.setdefault(text, len(self._numbers) + 1)
        self.verdicts[number] = text
        return number | bits

    def text_of(self, verdict: int) -> str:
        """Return the text of a verdict."""
        return self.verdicts[verdict & ~(ERROR_BIT | UNRESOLVABLE_BIT)]

    def forget(self, row: int) -> None:
        """Forget what was found for a row."""
        self.allocations.pop(row, None)
        self.unavailable.pop(row, None)

    def preference(self, row: int) -> int:
        """Return the score of a row: how far up in their lists the alternatives stand that were chosen."""
        allocation = self.allocations.get(row)
        if allocation is None:
            return 0
        chosen = iter(zip(allocation.claims, allocation.chosen, strict=True))
        total = 0
        for claim in self.claims:
            if claim.status.allocation is not None:
                taken = _requests_of(claim.status.allocation)
                total += _preference(claim, taken)
            else:
                own, part = next(chosen)
                total += _preference(own, {device.wish.wish.full_name for device in part.devices})
        return total


class Reservation(msgspec.Struct, frozen=True, eq=False):
    """What Reserve chose: by place in the claims of the cycle the claim with its allocation, and its requests for containers."""

    node_name: str
    claims: dict[int, ResourceClaim]
    requests: NodeRequests | None


def _requests_of(allocation: AllocationResult) -> set[str]:
    return {result.request for result in allocation.devices.results}


def _preference(claim: ResourceClaim, taken: set[str]) -> int:
    return sum(
        MAX_PREFERENCE - place
        for request in claim.spec.devices.requests
        if request.exactly is None
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in taken
    )
