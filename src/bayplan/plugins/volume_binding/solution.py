"""The volumes for a pod on every node, with their verdicts, and the score for storage usage (KEP-4049)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.framework.status import ERROR_BIT, UNRESOLVABLE_BIT
from bayplan.objects.quantity import value, wrap_int64
from bayplan.objects.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.pod_claims import storage_amount
from bayplan.plugins.verdict_texts import VerdictTexts
from bayplan.state.arrays import Bools, Codes, Ints

NODE_CONFLICT = 1
BIND_CONFLICT = 2
NOT_ENOUGH_SPACE = 4
VOLUME_MISSING = 8
REASONS = {
    NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    BIND_CONFLICT: "node(s) didn't find available persistent volumes to bind",
    NOT_ENOUGH_SPACE: "node(s) did not have enough free storage",
    VOLUME_MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
"""The flags of a verdict with their reasons, in the order in which reasons are listed."""
NOTHING = -1


class StaticChoice(msgspec.Struct, frozen=True):
    """A claim's choice among existing volumes: per row, an index in `volumes`, or `NOTHING`."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    picks: Ints


class Provision(msgspec.Struct, frozen=True):
    """A claim whose volume would be provisioned.

    Attributes:
        wanted: bool per row, where the volume would be provisioned.
        picks: per row, the index of the sufficient capacity in `capacities`, or `NOTHING`.
    """

    claim: PersistentVolumeClaim
    wanted: Bools
    capacities: Sequence[CSIStorageCapacity]
    picks: Ints


class Decision(msgspec.Struct, frozen=True):
    """The volumes for a pod on one node.

    Attributes:
        bindings: claims with the volumes that they take.
        provisions: claims whose volumes must be provisioned, each with a published capacity that is sufficient; None if
            the driver publishes none.
    """

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    provisions: tuple[tuple[PersistentVolumeClaim, CSIStorageCapacity | None], ...]


class Solution:
    """The volumes of a pod on every node.

    Attributes:
        flags: uint16 per row, the reasons against the node.
        static, provisions: the choices for unbound claims, each in upstream's order.
        errors: messages with bool per row; the first error of a row counts, and ends the cycle.
    """

    def __init__(self, count: int) -> None:
        self.flags: Codes = np.zeros(count, dtype=np.uint16)
        self.static: list[StaticChoice] = []
        self.provisions: list[Provision] = []
        self.errors: list[tuple[str, Bools]] = []
        self._verdicts: Codes | None = None

    def verdicts(self, texts: VerdictTexts) -> Codes:
        """Return uint16 per row, 0 if all volumes of the pod are available. `texts`: the plugin's errors."""
        if self._verdicts is None:
            self._verdicts = self.flags | (self.flags != 0) * np.uint16(UNRESOLVABLE_BIT)
            for text, rows in reversed(self.errors):
                self._verdicts[rows] = texts.verdict(text, ERROR_BIT)
        return self._verdicts

    def decision(self, row: int) -> Decision:
        """Return the volumes for the pod on the node of a row that passed."""
        bindings = [
            (choice.claim, choice.volumes[choice.picks.item(row)])
            for choice in self.static
            if choice.picks.item(row) != NOTHING
        ]
        provisions = []
        for provision in self.provisions:
            if provision.wanted.item(row):
                pick = provision.picks.item(row)
                provisions.append((provision.claim, None if pick == NOTHING else provision.capacities[pick]))
        return Decision(tuple(bindings), tuple(provisions))


FULL_UTILIZATION = 100


def capacity_score(decision: Decision, shape: Sequence[tuple[int, int]]) -> int:
    """Return the mean, over storage classes, of the shape's value at the requested share of storage.

    If the pod takes existing volumes, volumes to be provisioned are ignored.
    """
    # By class: the requested amount and the capacity in bytes.
    amounts: dict[str, tuple[int, int]] = {}
    for claim, volume in decision.bindings:
        name = volume.spec.storage_class_name
        requested, capacity = amounts.get(name, (0, 0))
        requested += storage_amount(claim.spec.resources.requests).value()
        amounts[name] = (requested, capacity + storage_amount(volume.spec.capacity).value())
    for claim, published in decision.provisions if not decision.bindings else ():
        if published is not None:
            name = claim.spec.storage_class_name or ""
            requested = amounts.get(name, (0, 0))[0] + storage_amount(claim.spec.resources.requests).value()
            amounts[name] = (requested, value(published.capacity) if published.capacity is not None else 0)
    if not amounts:
        return 0
    total = sum(_score(wrap_int64(requested), wrap_int64(capacity), shape) for requested, capacity in amounts.values())
    # Round half away from zero; scores in a shape are never negative.
    return (2 * total + len(amounts)) // (2 * len(amounts))


def _score(requested: int, capacity: int, shape: Sequence[tuple[int, int]]) -> int:
    """Return the value of the shape, which is constant before its first point and after its last."""
    utilization = FULL_UTILIZATION
    if capacity != 0 and requested <= capacity:
        utilization = go.quotient(wrap_int64(requested * FULL_UTILIZATION), capacity)
    if utilization <= shape[0][0]:
        return shape[0][1]
    for (x0, y0), (x1, y1) in pairwise(shape):
        if utilization <= x1:
            return y0 + go.quotient((y1 - y0) * (utilization - x0), x1 - x0)
    return shape[-1][1]
