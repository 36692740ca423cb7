"""Choose devices the slow way: write down every choice in the order of preference, take the first that holds.

Knows exact requests, all devices, alternatives, attributes that match or differ per request, admins, devices in use, taints,
and counters from which devices draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations


@dataclass(frozen=True)
class NaiveWish:
    """The devices of a request (or an alternative): a count or, with None, all; only those whose index is in `indexes`."""

    count: int | None
    indexes: tuple[int, ...]
    admin: bool = False
    tolerates: bool = False


@dataclass(frozen=True)
class NaiveClaim:
    """Requests, each a list of alternatives; `match` requires that all devices have one value of the attribute group."""

    requests: tuple[tuple[NaiveWish, ...], ...]
    match: bool = False


@dataclass(frozen=True)
class NaiveDevice:
    """A device: its place in the order, attributes, whether it is in use or tainted, and what it draws from the one counter."""

    name: str
    index: int
    group: int
    used: bool = field(default=False)
    tainted: bool = field(default=False)
    units: int = field(default=0)


Choice = tuple[tuple[int, tuple[str, ...]], ...]
"""For each request the number of the alternative and its devices."""


def choices_of(wish: NaiveWish, devices: Sequence[NaiveDevice]) -> Iterator[tuple[NaiveDevice, ...]]:
    """Yield every set of devices that would serve a wish alone."""
    fitting = [device for device in devices if device.index in wish.indexes]
    if wish.count is None:
        # All means all: one that is tainted and not tolerated leaves no choice.
        if fitting and (wish.tolerates or not any(device.tainted for device in fitting)):
            yield tuple(fitting)
        return
    yield from combinations((device for device in fitting if wish.tolerates or not device.tainted), wish.count)


def allocate(
    claims: Sequence[NaiveClaim], devices: Sequence[NaiveDevice], units: int | None = None
) -> list[Choice] | None:
    """Return the first choice for all claims in the order of preference, or None. `units`: what the counter of the devices has."""
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
    """Return whether no device serves two that exclude each other, and constraints are met.

    An admin's device may be in use, and may serve another claim that came before it; the same claim it may not serve twice, and
    who comes after it finds it taken.
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
