"""Allocate devices naively: try every combination in the order of preference, and take the first that is valid.

It supports exact counts, all devices, alternatives, attributes that must match or differ, admin access, devices in use,
taints, and counters that devices consume.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations


@dataclass(frozen=True)
class NaiveWish:
    """A request or an alternative: a count of devices (None: all), and the indexes of devices that it may use."""

    count: int | None
    indexes: tuple[int, ...]
    admin: bool = False
    tolerates: bool = False


@dataclass(frozen=True)
class NaiveClaim:
    """The requests of a claim, each a list of alternatives.

    If `match`, all devices must have the same value of the attribute group.
    """

    requests: tuple[tuple[NaiveWish, ...], ...]
    match: bool = False


@dataclass(frozen=True)
class NaiveDevice:
    """A device: position in the order, attributes, whether it is in use or tainted, and units that it consumes."""

    name: str
    index: int
    group: int
    used: bool = field(default=False)
    tainted: bool = field(default=False)
    units: int = field(default=0)


Choice = tuple[tuple[int, tuple[str, ...]], ...]
"""For each request, the index of the alternative and the names of its devices."""


def choices_of(wish: NaiveWish, devices: Sequence[NaiveDevice]) -> Iterator[tuple[NaiveDevice, ...]]:
    """Yield every combination of devices that satisfies one request alone."""
    fitting = [device for device in devices if device.index in wish.indexes]
    if wish.count is None:
        # "All" includes tainted devices: if one of them is not tolerated, no combination is valid.
        if fitting and (wish.tolerates or not any(device.tainted for device in fitting)):
            yield tuple(fitting)
        return
    yield from combinations((device for device in fitting if wish.tolerates or not device.tainted), wish.count)


def allocate(
    claims: Sequence[NaiveClaim], devices: Sequence[NaiveDevice], units: int | None = None
) -> list[Choice] | None:
    """Return the first valid choice for all claims, or None; `units` is the capacity of the counter."""
    drawn = sum(device.units for device in devices if device.used)
    for solution in _solutions(list(claims), devices):
        if _holds(claims, solution) and (units is None or drawn + _drawn(solution) <= units):
            return [
                tuple((number, tuple(device.name for device in chosen)) for number, chosen in choice)
                for choice in solution
            ]
    return None


Solution = list[list[tuple[int, tuple[NaiveDevice, ...]]]]


def _solutions(claims: list[NaiveClaim], devices: Sequence[NaiveDevice]) -> Iterator[Solution]:
    if not claims:
        yield []
        return
    for first in _claim_choices(claims[0].requests, devices):
        for rest in _solutions(claims[1:], devices):
            yield [first, *rest]


def _claim_choices(
    requests: Sequence[tuple[NaiveWish, ...]], devices: Sequence[NaiveDevice]
) -> Iterator[list[tuple[int, tuple[NaiveDevice, ...]]]]:
    if not requests:
        yield []
        return
    for number, wish in enumerate(requests[0]):
        for chosen in choices_of(wish, devices):
            for rest in _claim_choices(requests[1:], devices):
                yield [(number, chosen), *rest]


def _drawn(solution: Solution) -> int:
    return sum(device.units for choice in solution for _, chosen in choice for device in chosen)


def _holds(claims: Sequence[NaiveClaim], solution: Solution) -> bool:
    """Return whether no device is allocated twice without permission, and all constraints hold.

    For admin access a device may be in use, and may have been allocated to earlier claims, but not to the same claim.
    Later requests without admin access cannot use it.
    """
    taken: list[tuple[str, int]] = []
    for place, (claim, choice) in enumerate(zip(claims, solution, strict=True)):
        groups = set()
        for alternatives, (number, chosen) in zip(claim.requests, choice, strict=True):
            wish = alternatives[number]
            for device in chosen:
                if wish.admin:
                    if (device.name, place) in taken:
                        return False
                elif device.used or any(name == device.name for name, _ in taken):
                    return False
                taken.append((device.name, place))
                groups.add(device.group)
        if claim.match and len(groups) > 1:
            return False
    return True
