"""The rows that reach a volume, and static binding: the volume reserved for a waiting claim, or the smallest that fits.

The rows of equal conditions (node affinity of volumes, topologies of classes and capacities) are computed once, and cached
until a node changes. A volume of one node costs one row.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from bayplan.base.go_sort import sort_slice
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.meta import LabelSelector
from bayplan.objects.quantity import Quantity
from bayplan.objects.selectors import (
    EVERYTHING,
    Requirement,
    Selector,
    SelectorError,
    check_requirement,
    compile_label_selector,
    compile_node_selector,
)
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm
from bayplan.plugins.pod_claims import class_of_claim, class_of_volume, storage_amount
from bayplan.plugins.volume_binding.solution import NOTHING, StaticChoice
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState

MAX_AFFINITIES = 1 << 15
"""Maximum number of affinities cached by address; at the limit the cache is cleared."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A condition on the labels of nodes.

    Attributes:
        key: equal for equivalent conditions; None for every node.
        terms: the requirements of each term.
    """

    key: Hashable
    terms: tuple[tuple[Requirement, ...], ...] = field(compare=False)


EVERY_NODE = Reach(None, ())


class ReachableRows:
    """Rows by condition, for one state."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._position = -1
        self._rows: dict[Hashable, Index] = {}
        # By address; entries reference the affinity, so that its address is not reused.
        self._by_affinity: dict[int, tuple[NodeSelector, Reach]] = {}

    def reach_of(self, affinity: NodeSelector | None) -> Reach:
        """Return the condition of a volume's node affinity; only labels count, and invalid terms match nothing."""
        if affinity is None:
            return EVERY_NODE
        known = self._by_affinity.get(id(affinity))
        if known is not None:
            return known[1]
        terms = [term for term in compile_node_selector(affinity).terms if not term.errors]
        reach = Reach(
            ("affinity", tuple([term.labels.key if term.labels is not None else () for term in terms])),
            tuple([term.labels.requirements if term.labels is not None else () for term in terms]),
        )
        if len(self._by_affinity) >= MAX_AFFINITIES:
            self._by_affinity.clear()
        self._by_affinity[id(affinity)] = affinity, reach
        return reach

    def rows_of(self, reach: Reach) -> Index:
        """Return intp, the rows that meet the condition."""
        return self._kept(reach.key, reach.terms)

    def by_affinity(self, affinity: NodeSelector | None) -> Index:
        """Return intp, the rows that a volume's node affinity allows."""
        return self.rows_of(self.reach_of(affinity))

    def by_topologies(self, terms: tuple[TopologySelectorTerm, ...]) -> Index:
        """Return intp, the rows that match one of a class's allowed topologies; all rows if it has none."""
        if not terms:
            return self._kept(None, ())
        compiled = []
        for term in terms:
            expressions = term.match_label_expressions
            if expressions and not any(check_requirement(item.key, "In", item.values) for item in expressions):
                compiled.append(Selector(Requirement(item.key, "In", item.values) for item in expressions))
        key = ("topologies", tuple(selector.key for selector in compiled))
        return self._kept(key, [selector.requirements for selector in compiled])

    def by_labels(self, selector: LabelSelector | None) -> Index:
        """Return intp, the rows whose labels match; none if the selector is missing or invalid."""
        try:
            compiled = compile_label_selector(selector)
        except SelectorError:
            return np.zeros(0, dtype=np.intp)
        if compiled.matches_nothing:
            return np.zeros(0, dtype=np.intp)
        return self._kept(("labels", compiled.key), [compiled.requirements])

    def _kept(self, key: Hashable, terms: Iterable[Iterable[Requirement]]) -> Index:
        position = self._cluster.node_log.end
        if position != self._position:
            self._position = position
            self._rows = {}
        rows = self._rows.get(key)
        if rows is None:
            rows = self._rows[key] = self._find(None if key is None else terms)
        return rows

    def _find(self, terms: Iterable[Iterable[Requirement]] | None) -> Index:
        nodes = self._cluster.nodes
        alive = nodes.alive[: nodes.count]
        if terms is None:
            return np.flatnonzero(alive)
        matched = np.zeros(nodes.count, dtype=np.bool_)
        for requirements in terms:
            hit = alive.copy()
            for requirement in requirements:
                hit &= self._matches(requirement)
            matched |= hit
        return np.flatnonzero(matched)

    def _matches(self, requirement: Requirement) -> Bools:
        column = self._cluster.nodes.label_column(requirement.key)
        codes = column.codes[: self._cluster.nodes.count]
        if requirement.operator != "In":
            return column.table(requirement)[codes]
        # A table of all values would cost more than it saves if every volume has its own value.
        wanted = [column.index[value] for value in requirement.values if value in column.index]
        if len(wanted) == 1:
            equal: Bools = codes == wanted[0]
            return equal
        return np.isin(codes, np.array(wanted, dtype=np.intp))


FILESYSTEM = "Filesystem"
BATCH = 1 << 16
"""Number of rows of volumes evaluated at a time, before checking whether any node is left."""


Taken: TypeAlias = tuple[dict[str, int], Ints]
"""The volumes that a claim takes on some row (their positions by name), and its choice on each row."""


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume is reserved for a claim; a reference without uid reserves it for any claim of that name."""
    reference, metadata = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.namespace, reference.name) != (metadata.namespace, metadata.name):
        return False
    return not reference.uid or reference.uid == metadata.uid


def by_size(claims: Sequence[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """Return claims sorted by requested storage, the smallest first; equal claims are in the order of Go's sort."""
    return sort_slice(claims, lambda claim: storage_amount(claim.spec.resources.requests))


def choose_volume(
    claim: PersistentVolumeClaim,
    selector: Selector | None,
    volumes: Sequence[PersistentVolume],
    reachable: ReachableRows,
    count: int,
    earlier: Sequence[StaticChoice],
) -> StaticChoice:
    """Return the volume that a claim takes on each node.

    Args:
        claim: the claim, which waits for its first consumer.
        selector: the selector of the claim, compiled; None if it has none.
        volumes: the volumes of the claim's class, in the order of their names.
        reachable: finds the rows of a node affinity.
        count: the number of rows.
        earlier: the choices for earlier claims of the pod; their volumes are taken.
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
        # A volume reserved for the claim is chosen even if it is unreachable.
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
    """Return whether a volume has enough storage, the right mode and attributes, and is neither reserved for others nor deleted."""
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
    """Choose for each undecided row the first reachable volume of a batch; return the number of volumes in the batch."""
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
