"""The score for storage usage: how well the chosen volumes use the storage of a node (gate StorageCapacityScoring, KEP-4049)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bayplan.objects.quantity import value, wrap_int64
from bayplan.plugins.pod_claims import storage_amount
from bayplan.plugins.volume_binding.solution import Decision

FULL_UTILIZATION = 100


def capacity_score(decision: Decision, shape: Sequence[tuple[int, int]]) -> int:
    """Return the mean over storage classes of the shape's value at requested by available storage, rounded.

    Existing volumes take precedence over those to provision: if there are any, only they count.
    """
    requested: dict[str, int] = {}
    capacity: dict[str, int] = {}
    for claim, volume in decision.bindings:
        name = volume.spec.storage_class_name
        requested[name] = requested.get(name, 0) + storage_amount(claim.spec.resources.requests).value()
        capacity[name] = capacity.get(name, 0) + storage_amount(volume.spec.capacity).value()
    if not decision.bindings:
        for claim, published in decision.provisions:
            if published is None:
                continue
            name = claim.spec.storage_class_name or ""
            requested[name] = requested.get(name, 0) + storage_amount(claim.spec.resources.requests).value()
            capacity[name] = value(published.capacity) if published.capacity is not None else 0
    if not requested:
        return 0
    total = sum(_score(wrap_int64(requested[name]), wrap_int64(capacity[name]), shape) for name in requested)
    # The nearest integer, halves away from zero; scores of a shape are never negative.
    return (2 * total + len(requested)) // (2 * len(requested))


def _score(requested: int, capacity: int, shape: Sequence[tuple[int, int]]) -> int:
    if capacity == 0 or requested > capacity:
        return _broken_linear(shape, FULL_UTILIZATION)
    return _broken_linear(shape, _quotient(wrap_int64(requested * FULL_UTILIZATION), capacity))


def _broken_linear(shape: Sequence[tuple[int, int]], utilization: int) -> int:
    """Return a piecewise linear function, constant before the first point and after the last one."""
    if utilization <= shape[0][0]:
        return shape[0][1]
    for (x0, y0), (x1, y1) in pairwise(shape):
        if utilization <= x1:
            return y0 + _quotient((y1 - y0) * (utilization - x0), x1 - x0)
    return shape[-1][1]


def _quotient(dividend: int, divisor: int) -> int:
    """Divide as Go does: towards zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient
