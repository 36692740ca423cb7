"""Static binding: choose an existing volume for a waiting claim, either the one reserved for it or the smallest that fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from bayplan.base.go_sort import sort_slice
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import EVERYTHING, Selector
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.pod_claims import class_of_claim, class_of_volume, storage_amount
from bayplan.plugins.volume_binding.reachable_rows import ReachableRows
from bayplan.plugins.volume_binding.solution import NOTHING, StaticChoice
from bayplan.state.arrays import Bools, Index, Ints

FILESYSTEM = "Filesystem"
BATCH = 1 << 16
"""Rows of volumes evaluated at a time before checking whether any are left."""


Taken: TypeAlias = tuple[dict[str, int], Ints]
"""The volumes that a claim takes somewhere, by name their positions, and its picks."""


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume is reserved for a claim; a reference without uid reserves it for any claim of that name."""
    reference, metadata = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.namespace, reference.name) != (metadata.namespace, metadata.name):
        return False
    return not reference.uid or reference.uid == metadata.uid


def by_size(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Return claims by the storage that they request, the smallest first, and equal ones as Go's sort leaves them."""
    return sort_slice(claims, lambda claim: storage_amount(claim.spec.resources.requests))


def choose_volume(
    claim: PersistentVolumeClaim,
    selector: Selector | None,
    volumes: Sequence[PersistentVolume],
    reachable: ReachableRows,
    count: int,
    earlier: Sequence[StaticChoice],
) -> StaticChoice:
    """Return which volume a claim takes on each node.

    Args:
        claim: waits for its first consumer.
        selector: of the claim, compiled; None if it has none.
        volumes: of the claim's class, in the order of their names.
        reachable: finds the rows of a node affinity.
        count: how many rows there are.
        earlier: the choices for the pod's claims that came first; what they took is gone.
    """
    requested = storage_amount(claim.spec.resources.requests)
    fitting = [volume for volume in volumes if could_hold(volume, claim, requested)]
    meant = [number for number, volume in enumerate(fitting) if is_bound_to(volume, claim)]
    free = [
        number
        for number, volume in enumerate(fitting)
        if volume.spec.claim_ref is None and is_available(volume, claim, selector or EVERYTHING)
    ]
    free.sort(key=lambda number: storage_amount(fitting[number].spec.capacity))
    taken = [_taken_by(choice) for choice in earlier]
    picks = np.full(count, NOTHING, dtype=np.int64)
    undecided = np.ones(count, dtype=np.bool_)
    for number in meant:
        # A volume that is reserved for the claim is chosen, whether reachable or not.
        here = np.flatnonzero(undecided)
        here = _not_taken(fitting[number], here, taken)
        undecided[here] = False
        reached = np.intersect1d(here, _rows_of(fitting[number], reachable), assume_unique=True)
        picks[reached] = number
    start = 0
    while start < len(free) and undecided.any():
        start += _take_in_order(free[start:], fitting, reachable, taken, undecided, picks)
    return StaticChoice(claim, fitting, picks)


def could_hold(volume: PersistentVolume, claim: PersistentVolumeClaim, requested: Quantity) -> bool:
    """Return whether a volume is large enough, of the right mode and attributes, and neither another's nor on its way out."""
    if volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
        return False
    if storage_amount(volume.spec.capacity) < requested:
        return False
    if (claim.spec.volume_mode or FILESYSTEM) != (volume.spec.volume_mode or FILESYSTEM):
        return False
    if (claim.spec.volume_attributes_class_name or "") != (volume.spec.volume_attributes_class_name or ""):
        return False
    return volume.metadata.deletion_timestamp is None


def is_available(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    """Return whether an unreserved volume has the labels, the class and the access modes that a claim requires."""
    return (
        volume.status.phase == "Available"
        and selector.matches(volume.metadata.labels)
        and class_of_volume(volume) == class_of_claim(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _rows_of(volume: PersistentVolume, reachable: ReachableRows) -> Index:
    affinity = volume.spec.node_affinity
    return reachable.by_affinity(affinity.required if affinity is not None else None)


def _take_in_order(
    numbers: Sequence[int],
    volumes: Sequence[PersistentVolume],
    reachable: ReachableRows,
    taken: Sequence[Taken],
    undecided: Bools,
    picks: Ints,
) -> int:
    """Give each undecided row the first volume that it can reach, as far as one batch goes; return how many were looked at."""
    batch: list[Index] = []
    size = 0
    for number in numbers:
        batch.append(_not_taken(volumes[number], _rows_of(volumes[number], reachable), taken))
        size += len(batch[-1])
        if size > BATCH:
            break
    rows = np.concatenate(batch)
    choices = np.repeat(np.array(numbers[: len(batch)], dtype=np.int64), [len(part) for part in batch])
    here = undecided[rows]
    # The last write to a row wins, so iterate backwards to give each row the first volume.
    rows, choices = rows[here][::-1], choices[here][::-1]
    picks[rows] = choices
    undecided[rows] = False
    return len(batch)


def _taken_by(choice: StaticChoice) -> Taken:
    numbers = np.unique(choice.picks).tolist()
    return {choice.volumes[number].metadata.name: number for number in numbers if number != NOTHING}, choice.picks


def _not_taken(volume: PersistentVolume, rows: Index, taken: Sequence[Taken]) -> Index:
    """Return the rows on which no earlier claim took a volume."""
    for numbers, picks in taken:
        number = numbers.get(volume.metadata.name)
        if number is not None:
            rows = rows[picks[rows] != number]
    return rows
