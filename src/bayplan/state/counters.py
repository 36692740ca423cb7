"""Counters: the number of matching pods on each node and in each topology domain, updated incrementally.

A `Counter` counts pods per row: those that match a selector and its namespaces (for terms of the incoming pod), or
those that own a term (for terms of existing pods). A `DomainTable` sums a counter over the domains of a topology key;
reading it takes time proportional to the changes since the last read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.state.arrays import Bools, Ints
from bayplan.state.pod_info import PodClass, PodInfo
from bayplan.state.row_log import LogReader, RowLog

if TYPE_CHECKING:
    from bayplan.state.node_table import NodeTable

MAX_CHANGES = 1 << 16
"""Maximum number of changes in a counter's log. Tables that missed changes which it has dropped sum again."""

Matches = Callable[[PodClass], bool]
"""Returns whether a selector and its namespaces match the pods of a class."""


class Counter:
    """The number of matching pods per row.

    Attributes:
        values: int64[capacity], the number of matching pods per row; `counts` is the same array, typed for compiled
            code.
        total: the sum of the values.
        matches: whether a class of pods matches; None if pods are counted for a term that they own.
        term, number: the owned term, and its number in the order of registration; else None and -1.
        log: for each change, the row of an added pod, or (-1 - row) of a removed pod.
    """

    def __init__(self, capacity: int, matches: Matches | None, term: Any = None, number: int = -1) -> None:
        self.values: Ints = np.zeros(capacity, dtype=np.int64)
        self.counts: Any = self.values
        self.total = 0
        self.matches = matches
        self.term = term
        self.number = number
        self.log = RowLog(MAX_CHANGES)

    def add(self, row: int, count: int) -> None:
        """Add (1) or remove (-1) a pod on a row."""
        self.counts[row] += count
        self.total += count
        self.log.append(row if count > 0 else -1 - row)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        grown: Ints = np.zeros(capacity, dtype=np.int64)
        grown[: len(self.values)] = self.values
        self.values = self.counts = grown


class Counters:
    """The counters of a state, by key. Whether a counter counts a pod class is evaluated once per class.

    A counter lives as long as a pod, its class or a plan refers to it.

    Attributes:
        registered: the number of owned terms that were ever registered.
        tables: the domain tables that are still referenced, by topology key, counter (`id`) and key of the eligibility.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._matching: WeakValueDictionary[Hashable, Counter] = WeakValueDictionary()
        self._owned: WeakValueDictionary[Hashable, Counter] = WeakValueDictionary()
        self.registered = 0
        self.tables: WeakValueDictionary[tuple[str, int, Hashable], DomainTable] = WeakValueDictionary()

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        if capacity != self._capacity:
            self._capacity = capacity
            for counter in (*self._matching.values(), *self._owned.values()):
                counter.grow(capacity)

    def matching(self, key: Hashable, matches: Matches, classes: Iterable[PodClass]) -> Counter:
        """Return the counter of the pods whose class matches; for equal keys, `matches` must return equal results."""
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

    def register_class(self, pod_class: PodClass) -> None:
        """Add a new pod class to every counter that matches it."""
        pod_class.counters += [
            item for item in _alive(self._matching) if item.matches is not None and item.matches(pod_class)
        ]

    def owned(self, key: Hashable) -> Counter:
        """Return the counter of pods that own a term."""
        counter = self._owned.get(key)
        if counter is None:
            counter = self._owned[key] = Counter(self._capacity, None, key, self.registered)
            self.registered += 1
        return counter

    def owned_since(self, number: int) -> list[Counter]:
        """Return the counters of owned terms from a number on, in the order of registration."""
        return [counter for counter in _alive(self._owned) if counter.number >= number]

    def check_invariants(self, infos: Iterable[PodInfo]) -> None:
        """Raise `InvariantError` if a counter contradicts the pods on rows."""
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


def _alive(counters: WeakValueDictionary[Hashable, Counter]) -> list[Counter]:
    # Takes a third of the time of `values`, which pays if every pod has terms of its own.
    return [counter for reference in counters.valuerefs() if (counter := reference()) is not None]


class Eligibility:
    """The cached mask of the nodes that a domain table counts; recomputed when nodes change.

    Args:
        key: everything that the mask depends on, except the nodes.
        make: the function that returns bool[rows in use].
    """

    __slots__ = ("_make", "_mask", "_node_position", "key")

    def __init__(self, key: Hashable, make: Callable[[], Bools]) -> None:
        self.key = key
        self._make = make
        self._mask: Bools = np.zeros(0, dtype=np.bool_)
        self._node_position = -1

    def mask(self, node_position: int) -> Bools:
        """Return the mask (bool[rows in use]). `node_position`: the end of the log of changed nodes."""
        if node_position != self._node_position:
            self._mask = self._make()
            self._node_position = node_position
        return self._mask


class DomainTable:
    """A counter summed over the domains of a topology key.

    Args:
        key: the topology key.
        counter: the counter to sum.
        nodes, node_log: the nodes and the change log of the state.
        eligibility: the eligible nodes; None for all.

    Attributes:
        codes: intp[capacity], the domain of each row; -1 if the node lacks the key.
        values: int64[domains + 1], pods per domain; the last element, for nodes without the key, stays 0.
        last: the index of that last element. `codes`, `values` and `last` are those of the last `refresh`.
        version: changes with every change of the sums.
        positive_version: changes when a domain gets its first pod or loses its last, or when nodes change.
        positive: the number of domains with pods.
        distinct: whether every node is its own domain, so that a change affects only the rows on which pods were added
            or removed.
        node_position: the end of the log of changed nodes at the last refresh.
    """

    def __init__(
        self,
        key: str,
        counter: Counter,
        nodes: NodeTable,
        node_log: RowLog,
        eligibility: Eligibility | None = None,
    ) -> None:
        self.key = key
        self.counter = counter
        self.nodes = nodes
        self.node_log = node_log
        self.eligibility = eligibility
        self.codes: Any = np.zeros(0, dtype=np.intp)
        self.values: Any = np.zeros(1, dtype=np.int64)
        self.last = 0
        self.version = 0
        self.positive_version = 0
        self.positive = 0
        self.distinct = False
        self.node_position = -1
        self._mask: Any = None
        self._has_mask = False
        self._changes = LogReader(counter.log)

    def refresh(self) -> None:
        """Update the sums for the changes since the last call."""
        count = self._changes.take(MAX_CHANGES)
        if count < 0 or self.node_position != self.node_log.end:
            self._sum_up()
            return
        for number in range(count):
            change = self._changes.rows[number]
            row = change if change >= 0 else -1 - change
            code = self.codes[row]
            if code < 0 or (self._has_mask and not self._mask[row]):
                continue
            before = self.values[code]
            after = before + (1 if change >= 0 else -1)
            self.values[code] = after
            self.version += 1
            if (before > 0) != (after > 0):
                self.positive += 1 if after > 0 else -1
                self.positive_version += 1

    def _sum_up(self) -> None:
        nodes, end = self.nodes, self.node_log.end
        column, count = nodes.label_column(self.key), nodes.count
        counted = self.counter.values[:count]
        self._has_mask = self.eligibility is not None
        if self.eligibility is not None:
            mask = self.eligibility.mask(end)
            counted = counted * mask
            self._mask = np.ascontiguousarray(mask).view(np.uint8)
        # Codes are shifted by one: nodes without the key are counted at index 0, which is then moved to the end.
        found = np.bincount(column.codes[:count] + 1, weights=counted, minlength=len(column.values) + 1)
        sums: Ints = np.roll(found, -1).astype(np.int64)
        self.codes = column.codes
        self.values = sums
        self.last = len(sums) - 1
        self.values[self.last] = 0
        self.positive = int(np.count_nonzero(sums > 0))
        codes = column.codes[:count][nodes.alive[:count]]
        self.distinct = bool((codes >= 0).all()) and int(np.bincount(codes).max(initial=1)) == 1
        self.version += 1
        self.positive_version += 1
        self.node_position = end

    def some(self) -> bool:
        """Return whether any domain has matching pods."""
        self.refresh()
        return self.positive > 0
