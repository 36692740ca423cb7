"""How many pods of each node, and of each topology domain, match something: kept by deltas, never searched.

A `Counter` counts pods per row. Two kinds of question share it: which pods do a selector and its namespaces match (asked by the
incoming pod's terms), and which pods own a term (asked the other way round). A `DomainTable` sums a counter up over the domains
of a topology key; reading it costs what changed since it was last read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.state.arrays import Bools, Ints
from bayplan.state.pod_info import PodClass, PodInfo
from bayplan.state.row_log import RowLog

if TYPE_CHECKING:
    from bayplan.state.node_table import NodeTable

MOST_STEPS = 64
"""A table that missed more changes than this is summed up anew."""

Matches = Callable[[PodClass], bool]
"""Whether a selector and its namespaces match the pods of a class."""


class Counter:
    """Pods per row that match.

    Attributes:
        values: int64[capacity]. total: their sum.
        log: rows whose count changed.
        matches: tells which classes count; None where pods are counted for a term that they own.
    """

    __slots__ = ("log", "matches", "total", "values")

    def __init__(self, capacity: int, matches: Matches | None) -> None:
        self.values: Ints = np.zeros(capacity, dtype=np.int64)
        self.total = 0
        self.log = RowLog()
        self.matches = matches

    def add(self, row: int, count: int) -> None:
        """Count pods in (or, below zero, out)."""
        self.values[row] += count
        self.total += count
        self.log.append(row)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        grown = np.zeros(capacity, dtype=np.int64)
        grown[: len(self.values)] = self.values
        self.values = grown


class Counters:
    """All counters of a state, by what they count.

    Counters of classes are asked about every class once; a counter that comes late is filled from the classes' pods per row.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._matching: dict[Hashable, Counter] = {}
        self._owned: dict[Hashable, Counter] = {}
        self._tables: dict[tuple[str, int, Hashable], DomainTable] = {}

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        if capacity != self._capacity:
            self._capacity = capacity
            for counter in (*self._matching.values(), *self._owned.values()):
                counter.grow(capacity)

    def matching(self, key: Hashable, matches: Matches, classes: Iterable[PodClass]) -> Counter:
        """Return the counter of pods whose class matches; `key` must say all that `matches` depends on."""
        counter = self._matching.get(key)
        if counter is None:
            counter = self._matching[key] = Counter(self._capacity, matches)
            for pod_class in classes:
                if matches(pod_class):
                    pod_class.counters.append(counter)
                    for row, count in pod_class.nodes.items():
                        counter.values[row] += count
                        counter.total += count
        return counter

    def meet(self, pod_class: PodClass) -> None:
        """Find the counters that a new class counts for."""
        pod_class.counters += [
            item for item in self._matching.values() if item.matches is not None and item.matches(pod_class)
        ]

    def owned(self, key: Hashable) -> Counter:
        """Return the counter of pods that own a term."""
        counter = self._owned.get(key)
        if counter is None:
            counter = self._owned[key] = Counter(self._capacity, None)
        return counter

    def domain_table(
        self, topology_key: str, counter: Counter, nodes: NodeTable, eligibility: Eligibility | None
    ) -> DomainTable:
        """Return the sums of a counter over the domains of a topology key."""
        key = (topology_key, id(counter), eligibility.key if eligibility is not None else None)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = DomainTable(topology_key, counter, nodes, eligibility)
        return table

    def owned_keys(self) -> Iterator[Hashable]:
        """Yield the terms that pods own or owned, in the order in which they came."""
        return iter(self._owned)

    def owned_count(self) -> int:
        """Return how many terms there are: it moves when a new one comes."""
        return len(self._owned)

    @staticmethod
    def count(info: PodInfo, row: int, count: int) -> None:
        """Count one pod in (1) or out (-1) on a row."""
        for counter in info.pod_class.counters:
            counter.add(row, count)
        for counter in info.owned_counters:
            counter.add(row, count)

    def check_invariants(self, infos: Iterable[PodInfo]) -> None:
        """Raise `InvariantError` where a counter is not what the pods on rows give."""
        expected: dict[int, Ints] = {}
        for info in infos:
            for counter in (*info.pod_class.counters, *info.owned_counters):
                values = expected.setdefault(id(counter), np.zeros(self._capacity, dtype=np.int64))
                values[info.row] += 1
        for kind, counters in (("matching", self._matching), ("owned", self._owned)):
            for key, counter in counters.items():
                if not np.array_equal(
                    expected.get(id(counter), np.zeros(self._capacity, dtype=np.int64)), counter.values
                ):
                    raise InvariantError(f"the {kind} counter {key!r} is not what the pods on rows give")
                if counter.total != int(counter.values.sum()):
                    raise InvariantError(f"the total of the {kind} counter {key!r} is not the sum of its rows")


class Eligibility:
    """Which nodes count, for a table that leaves some out: remade when nodes change.

    Args:
        key: says all that the mask depends on beside the nodes.
        make: returns bool[rows in use].
    """

    __slots__ = ("_flags", "_make", "_mask", "_node_position", "key")

    def __init__(self, key: Hashable, make: Callable[[], Bools]) -> None:
        self.key = key
        self._make = make
        self._mask: Bools = np.zeros(0, dtype=np.bool_)
        self._flags = b""
        self._node_position = -1

    def mask(self, node_position: int) -> Bools:
        """Return bool[rows in use]; `node_position` is the end of the log of changed nodes."""
        if node_position != self._node_position:
            self._mask = self._make()
            self._flags = self._mask.tobytes()
            self._node_position = node_position
        return self._mask

    def flags(self, node_position: int) -> bytes:
        """Return the same as bytes."""
        self.mask(node_position)
        return self._flags


class DomainTable:
    """A counter summed up over the domains of a topology key.

    Attributes:
        key: the topology key. counter: what is summed up.
    """

    __slots__ = (
        "_codes",
        "_eligibility",
        "_flags",
        "_mask",
        "_node_position",
        "_nodes",
        "_position",
        "_seen",
        "_sums",
        "counter",
        "key",
    )

    def __init__(self, key: str, counter: Counter, nodes: NodeTable, eligibility: Eligibility | None = None) -> None:
        self.key = key
        self.counter = counter
        self._nodes = nodes
        self._eligibility = eligibility
        self._position = -1
        self._node_position = -1
        self._seen: Ints = counter.values
        self._sums: Ints = counter.values
        self._codes = nodes.label_column(key).codes
        self._mask: Bools | None = None
        # As bytes of bools which sums are positive; None where that must be found anew.
        self._flags: bytes | None = None

    def positive(self, node_position: int) -> bytes:
        """Return as bytes of bools which sums are positive; the very same object while these are the same."""
        sums = self.sums(node_position)
        if self._flags is None:
            self._flags = (sums > 0).tobytes()
        return self._flags

    def sums(self, node_position: int) -> Ints:
        """Return int64[values of the key + 1], pods per domain; the last slot, of nodes without the key, stays 0.

        `node_position` is the end of the log of changed nodes; the array is the table's own and must not be written.
        """
        counter, seen, sums = self.counter, self._seen, self._sums
        if node_position == self._node_position:
            if self._position == counter.log.end:
                return sums
            rows = counter.log.since(self._position)
            if rows is not None and len(rows) <= MOST_STEPS:
                mask = self._mask
                for row in rows:
                    change = counter.values.item(row) - seen.item(row)
                    if change:
                        seen[row] += change
                        code = self._codes.item(row)
                        if code >= 0 and (mask is None or mask.item(row)):
                            before = sums.item(code)
                            sums[code] = before + change
                            if (before > 0) != (before + change > 0):
                                self._flags = None
                self._position = counter.log.end
                return sums
        column = self._nodes.label_column(self.key)
        count = self._nodes.count
        self._codes = column.codes
        self._seen = counter.values.copy()
        self._mask = self._eligibility.mask(node_position) if self._eligibility is not None else None
        counted = self._seen[:count] if self._mask is None else self._seen[:count] * self._mask
        # Codes are shifted by one so that nodes without the key fall into slot 0, which is then made the last one.
        found = np.bincount(column.codes[:count] + 1, weights=counted, minlength=len(column.values) + 1)
        self._sums = np.roll(found, -1).astype(np.int64)
        self._sums[-1] = 0
        self._flags = None
        self._position, self._node_position = counter.log.end, node_position
        return self._sums
