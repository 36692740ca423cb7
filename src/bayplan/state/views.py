"""Views of rows: what a plugin's rule is written over.

`Rows` hands out arrays for many rows, `Row` plain Python numbers for one. Both have the same names, so that one text of a rule
is the full pass over all nodes, the refresh of a changed row and the debug form. A rule uses comparisons, ``&``, ``|``, ``+ - *``
and the number functions of its view; never ``~``, ``and``, ``or``, ``if`` on values of rows, and never ``//`` or ``round``,
which differ from Go's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayplan.objects.node import Node
from bayplan.objects.quantity import wrap_int64
from bayplan.objects.requests import HostPort
from bayplan.objects.selectors import Requirement
from bayplan.state.amount_columns import AmountColumns
from bayplan.state.arrays import Bools, Codes, Floats, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import Columns
from bayplan.state.counters import Counter
from bayplan.state.pod_info import FIRST_RESOURCE, NON_ZERO_CPU, POD_COUNT, PodInfo

CPU_MEMORY = slice(0, 2)
REQUESTED_CPU_MEMORY = slice(FIRST_RESOURCE, FIRST_RESOURCE + 2)
NON_ZERO_CPU_MEMORY = slice(NON_ZERO_CPU, NON_ZERO_CPU + 2)
"""Rows of cpu and memory in the matrices of nodes and of usage."""


class Rows:
    """Many rows as arrays: all rows of the table, or those of an index.

    Args:
        state: the cluster.
        index: intp row numbers, or None for all rows in use (freed ones among them, which the caller masks).
    """

    __slots__ = ("_all", "index", "state")

    scalar = False

    def __init__(self, state: ClusterState, index: Index | None = None) -> None:
        self.state = state
        self.index = index
        self._all: slice | Index = slice(0, state.nodes.count) if index is None else index

    def __len__(self) -> int:
        return self.state.nodes.count if self.index is None else len(self.index)

    def at(self, index: Index) -> Rows:
        """Return a view of some rows (intp), counted in this one, which must be of all rows."""
        return Rows(self.state, index)

    # Columns.

    def compiled_columns(self) -> Columns:
        """Return the columns that compiled rules read."""
        return self.state.columns

    def columns(self) -> AmountColumns:
        """Return what is kept of cpu and memory as floats, of all rows of the table."""
        return self.state.usage_floats.follow()

    def row_numbers(self) -> Index:
        """Return the row numbers of this view."""
        return np.arange(self.state.nodes.count, dtype=np.intp) if self.index is None else self.index

    def allocatable(self, resource: int) -> Ints:
        """Return what nodes offer of a resource (milli for cpu)."""
        return self.state.nodes.allocatable[resource, self._all]

    def divisor(self, resource: int) -> Floats:
        """Return what nodes offer of a resource as floats, exact while ``small``; 1 where there is none."""
        return self.state.nodes.divisors[resource, self._all]

    def requested(self, resource: int) -> Ints:
        """Return the requests of the pods on each node for a resource."""
        return self.state.usage[FIRST_RESOURCE + resource, self._all]

    def non_zero_requested(self, resource: int) -> Ints:
        """Return requests of cpu (0) or memory (1), with the scoring defaults for containers without."""
        return self.state.usage[NON_ZERO_CPU + resource, self._all]

    def cpu_memory_divisors(self) -> Floats:
        """Return float64[2, rows], `divisor` of cpu and memory. Arrays only, as the next five, and not to be written to."""
        return self.state.nodes.divisors[CPU_MEMORY, self._all]

    def cpu_memory_requested(self) -> Floats:
        """Return float64[2, rows], `requested` of cpu and memory, exact while ``small``."""
        return self.columns().requested[:, self._all]

    def cpu_memory_non_zero_requested(self) -> Floats:
        """Return float64[2, rows], `non_zero_requested` of cpu and memory, exact while ``small``."""
        return self.columns().non_zero[:, self._all]

    def cpu_memory_requested_with(self, requests: Floats) -> Floats:
        """Return float64[..., 2, rows], what is requested and float64[..., 2, 1] in addition, exact while ``small``."""
        if self.index is None and requests.ndim == 2:
            return self.columns().requested_with(requests, len(self))
        return self.cpu_memory_requested() + requests

    def cpu_memory_hundredfold(self) -> Floats:
        """Return float64[2, rows], 100 times the divisors without the non-zero requests, exact while ``small``."""
        return self.columns().hundredfold[:, self._all]

    def leave_room(self, requests: Floats) -> bool:
        """Return whether float64[..., 2, 1] of cpu and memory are known to be free on all of these rows; False says nothing."""
        if self.index is not None or requests.ndim != 2:
            return False
        cpu, memory = self.columns().least_free
        return requests.item(0) <= cpu and requests.item(1) <= memory

    def leave_hundredfold(self, requests: Floats) -> bool:
        """Return whether float64[..., 2, 1] are known to be at most `cpu_memory_hundredfold` on all of these rows; likewise."""
        if self.index is not None or requests.ndim != 2:
            return False
        cpu, memory = self.columns().least_hundredfold
        return requests.item(0) <= cpu and requests.item(1) <= memory

    def some_crowded(self) -> bool:
        """Return whether some node in the cluster has as many pods as it allows."""
        return self.columns().crowded_count > 0

    def crowded(self) -> Bools:
        """Return which nodes have as many pods as they allow."""
        return self.columns().crowded[self._all]

    def pod_count(self) -> Ints:
        """Return the number of pods on each node."""
        return self.state.usage[POD_COUNT, self._all]

    def allowed_pods(self) -> Ints:
        """Return the number of pods that each node allows."""
        return self.state.nodes.allowed_pods[self._all]

    def unschedulable(self) -> Bools:
        """Return which nodes are cordoned."""
        return self.state.nodes.unschedulable[self._all]

    def taints(self) -> Index:
        """Return each node's position in ``state.nodes.taint_sets``."""
        return self.state.nodes.taint_codes[self._all]

    def label(self, key: str) -> Index:
        """Return each node's code in the column of a label key; -1 where it lacks the key."""
        return self.state.nodes.label_column(key).codes[self._all]

    def has_label(self, key: str) -> Bools:
        """Return which nodes have a label key."""
        return self.label(key) >= 0

    def counts(self, counter: Counter) -> Ints:
        """Return how many pods on each node a counter counts: part of what pods take (`Reads.USAGE`)."""
        return counter.values[self._all]

    def matches(self, requirement: Requirement) -> Bools:
        """Return which nodes' labels meet a requirement of a selector."""
        column = self.state.nodes.label_column(requirement.key)
        return column.table(requirement)[column.codes[self._all]]

    def named(self, names: Sequence[str]) -> Bools:
        """Return which nodes have one of these names."""
        hit = np.zeros(self.state.nodes.count, dtype=np.bool_)
        row_of = self.state.nodes.row_of
        hit[[row_of[name] for name in names if name in row_of]] = True
        return hit[self._all]

    def has_image(self, name: str) -> Bools:
        """Return which nodes hold an image, by the name that nodes report."""
        image = self.state.nodes.images.get(name)
        if image is None:
            return self.everywhere(False)
        return image.column(self.state.nodes.capacity)[self._all]

    def host_port_conflicts(self, wanted: HostPort) -> Bools:
        """Return on which nodes a port collides with one in use."""
        return self.state.host_ports.column(wanted, self.state.nodes.capacity)[self._all]

    # Number functions.

    def where(self, condition: Bools, then: Ints | int, otherwise: Ints | int) -> Ints:
        """Choose element by element."""
        return np.where(condition, then, otherwise)

    def where_float(self, condition: Bools, then: Floats | float, otherwise: Floats | float) -> Floats:
        """Choose element by element between floats."""
        return np.where(condition, then, otherwise)

    def minimum(self, left: Ints, right: Ints | int) -> Ints:
        """Return the smaller of both, element by element."""
        return np.minimum(left, right)

    def maximum(self, left: Ints, right: Ints | int) -> Ints:
        """Return the larger of both, element by element."""
        return np.maximum(left, right)

    def quotient(self, dividend: Ints, divisor: Ints | int) -> Ints:
        """Divide integers as Go does: towards zero. The divisor must not be 0; where ``small``, both are below 2^53."""
        if self.state.small:
            # Both are exact in float64, and so is the quotient once it is cut (architecture notes on small numbers).
            return np.true_divide(dividend, divisor).astype(np.int64)
        with np.errstate(over="ignore"):
            quotient: Ints = np.floor_divide(dividend, divisor)
        inexact = quotient * divisor != dividend
        quotient += inexact & ((np.asarray(dividend) < 0) != (np.asarray(divisor) < 0))
        return quotient

    def wrap(self, values: Ints) -> Ints:
        """Return what Go's int64 keeps of sums and products: arrays have wrapped by themselves."""
        return values

    def everywhere(self, condition: bool) -> Bools:
        """Return the same condition for every row."""
        return np.full(len(self), condition, dtype=np.bool_)

    def nowhere(self, condition: Bools) -> bool:
        """Return whether a condition holds on no row of this view."""
        return not np.count_nonzero(condition)

    def verdicts(self, *cases: tuple[Bools, int]) -> Codes:
        """Return per row the union of the verdicts whose condition holds there."""
        union = np.zeros(len(self), dtype=np.uint16)
        for condition, verdict in cases:
            union |= condition * np.uint16(verdict)
        return union

    def to_float(self, values: Ints) -> Floats:
        """Convert integers to float64, as Go's float64() does."""
        return values.astype(np.float64)

    def trunc(self, values: Floats) -> Ints:
        """Convert float64 to integers, cutting towards zero, as Go's int64() does on amd64."""
        if self.state.small:
            return values.astype(np.int64)
        fits = np.abs(values) < 2.0**63
        return np.where(fits, np.where(fits, values, 0.0).astype(np.int64), np.iinfo(np.int64).min)

    def sqrt(self, values: Floats) -> Floats:
        """Return square roots."""
        return np.sqrt(values)

    def absolute(self, values: Floats) -> Floats:
        """Return absolute values."""
        return np.abs(values)

    def fill(self, number: int) -> Ints:
        """Return the same integer for every row."""
        return np.full(len(self), number, dtype=np.int64)

    def fill_float(self, number: float) -> Floats:
        """Return the same float for every row."""
        return np.full(len(self), number, dtype=np.float64)

    def take(self, table: Ints, codes: Index) -> Ints:
        """Look codes up in a table; -1 picks its last slot."""
        return table[codes]

    def looked_up(self, flags: bytes, codes: Index) -> Bools:
        """Look codes up in bools that are given as bytes; -1 picks the last."""
        return np.frombuffer(flags, dtype=np.bool_)[codes]

    def looked_up_floats(self, numbers: bytes, codes: Index) -> Floats:
        """Look codes up in float64 that are given as bytes; -1 picks the last."""
        return np.frombuffer(numbers, dtype=np.float64)[codes]

    def looked_up_ints(self, numbers: bytes, codes: Index) -> Ints:
        """Look codes up in int64 that are given as bytes; -1 picks the last."""
        return np.frombuffer(numbers, dtype=np.int64)[codes]

    def to_list(self, condition: Bools) -> list[bool]:
        """Return a condition row by row."""
        found: list[bool] = condition.tolist()
        return found

    def from_list(self, values: list[int]) -> Ints:
        """Return integers that were computed row by row."""
        return np.array(values, dtype=np.int64)

    def codes(self, values: Ints) -> Codes:
        """Convert verdicts to the type of codes."""
        return values.astype(np.uint16)


class GatheredRows(Rows):
    """Rows of an index that several rules look at while the state stands still: columns of amounts are gathered once."""

    __slots__ = ("_allocatable", "_block", "_divisors", "_rows", "_usage")

    def __init__(self, state: ClusterState, index: Index) -> None:
        super().__init__(state, index)
        self._rows = index
        self._block: Ints = state.usage.take(index, axis=1)
        self._usage: list[Ints] = list(self._block)
        self._divisors: Floats | None = None
        self._allocatable: list[Ints] | None = None

    def divisor(self, resource: int) -> Floats:
        return self.cpu_memory_divisors()[resource] if resource < 2 else super().divisor(resource)

    def allocatable(self, resource: int) -> Ints:
        if self._allocatable is None:
            self._allocatable = list(self.state.nodes.allocatable.take(self._rows, axis=1))
        return self._allocatable[resource]

    def allowed_pods(self) -> Ints:
        return self.state.nodes.allowed_pods.take(self._rows)

    def requested(self, resource: int) -> Ints:
        return self._usage[FIRST_RESOURCE + resource]

    def non_zero_requested(self, resource: int) -> Ints:
        return self._usage[NON_ZERO_CPU + resource]

    def pod_count(self) -> Ints:
        return self._usage[POD_COUNT]

    def cpu_memory_divisors(self) -> Floats:
        if self._divisors is None:
            self._divisors = self.state.nodes.divisors[CPU_MEMORY].take(self._rows, axis=1)
        return self._divisors

    def cpu_memory_requested(self) -> Floats:
        return self._block[REQUESTED_CPU_MEMORY].astype(np.float64)

    def cpu_memory_non_zero_requested(self) -> Floats:
        return self._block[NON_ZERO_CPU_MEMORY].astype(np.float64)

    def cpu_memory_hundredfold(self) -> Floats:
        return 100.0 * (self.cpu_memory_divisors() - self._block[NON_ZERO_CPU_MEMORY])

    def crowded(self) -> Bools:
        return self.pod_count() >= self.allowed_pods()


class Row(Rows):
    """One row as plain Python numbers. Reused: set `number` to look at another row.

    Only right while ``state.small``: Python's integers don't wrap. The engine sees to that.
    """

    __slots__ = ("number",)

    scalar = True

    def __init__(self, state: ClusterState, number: int = -1) -> None:
        super().__init__(state)
        self.number = number

    def __len__(self) -> int:
        return 1

    @property
    def name(self) -> str:
        """Return the node's name."""
        name = self.state.nodes.names[self.number]
        assert name is not None
        return name

    @property
    def node(self) -> Node:
        """Return the typed node."""
        node = self.state.nodes.nodes[self.number]
        assert node is not None
        return node

    def pods(self) -> list[PodInfo]:
        """Return the pods on the node."""
        return list(self.state.pods_on[self.number].values())

    def row_numbers(self) -> Any:
        return self.number

    def allocatable(self, resource: int) -> Any:
        return self.state.nodes.allocatable.item(resource, self.number)

    def divisor(self, resource: int) -> Any:
        return self.state.nodes.divisors.item(resource, self.number)

    def requested(self, resource: int) -> Any:
        return self.state.usage.item(FIRST_RESOURCE + resource, self.number)

    def non_zero_requested(self, resource: int) -> Any:
        return self.state.usage.item(NON_ZERO_CPU + resource, self.number)

    def pod_count(self) -> Any:
        return self.state.usage.item(POD_COUNT, self.number)

    def allowed_pods(self) -> Any:
        return self.state.nodes.allowed_pods.item(self.number)

    def unschedulable(self) -> Any:
        return self.state.nodes.unschedulable.item(self.number)

    def taints(self) -> Any:
        return self.state.nodes.taint_codes.item(self.number)

    def label(self, key: str) -> Any:
        return self.state.nodes.label_column(key).codes.item(self.number)

    def counts(self, counter: Counter) -> Any:
        return counter.values.item(self.number)

    def matches(self, requirement: Requirement) -> Any:
        column = self.state.nodes.label_column(requirement.key)
        return column.table(requirement).item(column.codes.item(self.number))

    def named(self, names: Sequence[str]) -> Any:
        return self.state.nodes.names[self.number] in names

    def has_image(self, name: str) -> Any:
        image = self.state.nodes.images.get(name)
        return image is not None and self.number in image.rows

    def host_port_conflicts(self, wanted: HostPort) -> Any:
        return self.state.host_ports.conflict_on(self.number, wanted)

    def where(self, condition: Any, then: Any, otherwise: Any) -> Any:
        return then if condition else otherwise

    def where_float(self, condition: Any, then: Any, otherwise: Any) -> Any:
        return then if condition else otherwise

    def minimum(self, left: Any, right: Any) -> Any:
        return left if left < right else right

    def maximum(self, left: Any, right: Any) -> Any:
        return left if left > right else right

    def quotient(self, dividend: Any, divisor: Any) -> Any:
        if dividend >= 0 and divisor > 0:
            return dividend // divisor
        # Not by way of a float: sums that wrapped are larger than what float64 holds exactly.
        magnitude = abs(dividend) // abs(divisor)
        return magnitude if (dividend < 0) == (divisor < 0) else -magnitude

    def wrap(self, values: Any) -> Any:
        return wrap_int64(values)

    def everywhere(self, condition: bool) -> Any:
        return condition

    def nowhere(self, condition: Any) -> Any:
        return not condition

    def verdicts(self, *cases: Any) -> Any:
        union = 0
        for condition, verdict in cases:
            if condition:
                union |= verdict
        return union

    def to_float(self, values: Any) -> Any:
        return float(values)

    def trunc(self, values: Any) -> Any:
        return int(values)

    def sqrt(self, values: Any) -> Any:
        return math.sqrt(values)

    def absolute(self, values: Any) -> Any:
        return abs(values)

    def fill(self, number: int) -> Any:
        return number

    def fill_float(self, number: float) -> Any:
        return number

    def take(self, table: Any, codes: Any) -> Any:
        return table.item(codes)

    def looked_up(self, flags: bytes, codes: Any) -> Any:
        return flags[codes] != 0

    def looked_up_floats(self, numbers: bytes, codes: Any) -> Any:
        return np.frombuffer(numbers, dtype=np.float64).item(codes)

    def looked_up_ints(self, numbers: bytes, codes: Any) -> Any:
        return np.frombuffer(numbers, dtype=np.int64).item(codes)

    def to_list(self, condition: Any) -> list[bool]:
        return [condition]

    def from_list(self, values: list[int]) -> Any:
        return values[0]

    def codes(self, values: Any) -> Any:
        return values
