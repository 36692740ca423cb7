"""The claims of one pod in one cycle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import SKIP, Status
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.objects.selectors import CompiledNodeSelector
from bayplan.plugins.verdict_texts import VerdictTexts


class Variant(msgspec.Struct, frozen=True, eq=False):
    """The claims to allocate on nodes that lack the same resources; `signature` identifies their requests."""

    claims: tuple[ResourceClaim, ...]
    signature: bytes


class CycleClaims:
    """The plugin's data about a pod's claims.

    Attributes:
        claims: the claims of the pod's spec, then the special claim for extended resources.
        special: the special claim, or None.
        resources: the extended resources that the pod requests.
        available_on: for each claim, the nodes that can use its allocation; None for all.
        unready: the indexes of claims whose devices can't be bound, because of their conditions or a timeout.
        answer: the result of PreFilter.
        texts: the messages of verdicts.
        variants: the claims to allocate, by the resources that a node lacks.
    """

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.claims: Sequence[ResourceClaim] = ()
        self.special: ResourceClaim | None = None
        self.resources: Sequence[str] = ()
        self.available_on: list[CompiledNodeSelector | None] = []
        self.unready: frozenset[int] = frozenset()
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
