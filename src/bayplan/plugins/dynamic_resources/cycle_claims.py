"""The claims of one pod in one state of the cluster, as PreFilter found them.

All cycles of a pod use the same object until data on which it depends changes; until then, cached verdicts stay valid.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.objects.selectors import CompiledNodeSelector
from bayplan.plugins.dynamic_resources.extended_resources import NodeRequests
from bayplan.plugins.dynamic_resources.node_allocator import preference
from bayplan.state.arrays import Codes, Index


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
