"""Naive rules of the plugins that compare requests with the nodes' allocatable resources, one node at a time.

Both a node's allocatable resources and a pod's requests are dicts of amounts: milli-CPU, bytes, numbers of devices.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

Amounts = Mapping[str, int]


def fit_verdict(request: Amounts, used: Amounts, pods: int, offered: Amounts) -> tuple[str, tuple[str, ...]] | None:
    """Return the status code and the reasons why a node is too small or too full; None if the pod fits."""
    reasons = []
    too_small = False
    if pods + 1 > offered.get("pods", 0):
        reasons.append("Too many pods")
    order = [name for name in ("cpu", "memory", "ephemeral-storage") if name in request]
    for name in order + sorted(name for name in request if name not in order):
        wanted = request[name]
        if wanted > 0 and wanted > offered.get(name, 0) - used.get(name, 0):
            reasons.append(f"Insufficient {name}")
            too_small = too_small or wanted > offered.get(name, 0)
    if not reasons:
        return None
    return "UnschedulableAndUnresolvable" if too_small else "Unschedulable", tuple(reasons)


def counted(names: Sequence[str], request: Amounts, offered: Amounts) -> list[str]:
    """Return the resources to score: those that the node has, and extended ones only if the pod requests them."""
    native = ("cpu", "memory", "ephemeral-storage")
    return [name for name in names if offered.get(name, 0) != 0 and (name in native or request.get(name, 0) != 0)]


def least_allocated(weights: Mapping[str, int], request: Amounts, used: Amounts, offered: Amounts) -> int:
    """Return the weighted mean of the free percentages; each percentage and the mean are rounded down."""
    names = counted(list(weights), request, offered)
    if not names:
        return 0
    total = 0
    for name in names:
        free = offered[name] - used.get(name, 0) - request.get(name, 0)
        if free >= 0:
            total += weights[name] * (free * 100 // offered[name])
    return total // sum(weights[name] for name in names)


def most_allocated(weights: Mapping[str, int], request: Amounts, used: Amounts, offered: Amounts) -> int:
    """Return the weighted mean of the used percentages; each percentage and the mean are rounded down."""
    names = counted(list(weights), request, offered)
    if not names:
        return 0
    total = 0
    for name in names:
        taken = min(offered[name], used.get(name, 0) + request.get(name, 0))
        total += weights[name] * (taken * 100 // offered[name])
    return total // sum(weights[name] for name in names)


def requested_to_capacity_ratio(
    weights: Mapping[str, int],
    shape: Sequence[tuple[int, int]],
    request: Amounts,
    used: Amounts,
    offered: Amounts,
) -> int:
    """Return the weighted mean of the scores that `shape` gives to the used percentages; scores of 0 are ignored."""
    parts = []
    for name in counted(list(weights), request, offered):
        taken = used.get(name, 0) + request.get(name, 0)
        percent = 100 if taken > offered[name] else taken * 100 // offered[name]
        score = on_shape(shape, percent)
        if score > 0:
            parts.append((score, weights[name]))
    if not parts:
        return 0
    mean = Fraction(sum(score * weight for score, weight in parts), sum(weight for _, weight in parts))
    return math.floor(mean + Fraction(1, 2))


def on_shape(shape: Sequence[tuple[int, int]], percent: int) -> int:
    """Return the value of a piecewise linear function; the change from the point to the left is truncated."""
    if percent <= shape[0][0]:
        return shape[0][1]
    for (x0, y0), (x1, y1) in pairwise(shape):
        if percent <= x1:
            return y0 + math.trunc(Fraction((y1 - y0) * (percent - x0), x1 - x0))
    return shape[-1][1]


def balanced_allocation(names: Sequence[str], request: Amounts, used: Amounts, offered: Amounts) -> int:
    """Return the score for the change of a node's balance by a pod, from 50 to 100."""
    names = counted(names, request, offered)
    after = _balance([min(1.0, (used.get(name, 0) + request.get(name, 0)) / offered[name]) for name in names])
    before = _balance([min(1.0, used.get(name, 0) / offered[name]) for name in names])
    return 50 + (50 + after - before) // 2


def _balance(shares: Sequence[float]) -> int:
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    else:
        mean = _sum(shares) / len(shares)
        deviation = math.sqrt(_sum([(share - mean) * (share - mean) for share in shares]) / len(shares))
    return int((1 - deviation) * 100)


def _sum(numbers: Sequence[float]) -> float:
    """Sum up in order: since Python 3.12, the built-in sum compensates rounding errors."""
    total = 0.0
    for number in numbers:
        total += number
    return total
