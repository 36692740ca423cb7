"""The nodes as columns with the requests of their pods, in sync with the cluster: for heat map, table and utilisation.

The event loop writes; worker threads read frozen copies (`NodeColumns`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.answers.node_groups import group_of
from bayplan.base import go_arithmetic as go
from bayplan.base.go_text.times import parse_instant
from bayplan.http_api.named_rows import NamedRows, TextCodes
from bayplan.objects.node import Node, is_ready
from bayplan.objects.requests import Amounts, node_amounts
from bayplan.state.arrays import Bools, Ints
from bayplan.state.resource_table import PODS

FULL_SHARE = 0.98
"""Requested fraction of a resource above which a node counts as full."""

FULL_CELL = 101
"""The value of a full node's cell in the heat map. Other cells contain percentages."""

NO_CELL = 255
"""The value of the cell of a node that offers nothing of the resource."""

CORDONED, NOT_READY = 1, 2
"""Bits in a node's flags."""

_FIRST_ROWS = 256


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """A frozen copy of all nodes. Rows without a node have an empty name.

    Attributes:
        version: changes with every write.
        names_version: changes if nodes are added or removed, or change their labels.
        names, nodes: the name and the object of each row.
        rows: the row of each name.
        used: bool[rows], whether the row has a node.
        zone, pool: int64[rows], indexes into `zones` and `pools`.
        flags: int64[rows], `CORDONED` and `NOT_READY`.
        created_ns: int64[rows], the creation times.
        allocatable, requested: int64[rows] by resource; ``pods`` is the number of pods.
    """

    version: int
    names_version: int
    names: Sequence[str]
    nodes: Sequence[Node | None]
    rows: Mapping[str, int]
    used: Bools
    zone: Ints
    pool: Ints
    flags: Ints
    created_ns: Ints
    zones: Sequence[str]
    pools: Sequence[str]
    allocatable: Mapping[str, Ints]
    requested: Mapping[str, Ints]

    def amounts(self, resource: str) -> tuple[Ints, Ints]:
        """Return the allocatable and the requested amounts of a resource, by row; zeros for an unknown resource."""
        nothing = np.zeros(len(self.names), dtype=np.int64)
        return self.allocatable.get(resource, nothing), self.requested.get(resource, nothing)

    def cells(self, resource: str) -> Ints:
        """Return the requested percentage by row; `FULL_CELL` for full nodes, `NO_CELL` for nodes without the resource."""
        offered, asked = self.amounts(resource)
        has = offered > 0
        share = asked / np.where(has, offered, 1)
        cells = np.minimum(share * 100, FULL_CELL - 1).astype(np.int64)
        cells[share >= FULL_SHARE] = FULL_CELL
        cells[~has] = NO_CELL
        return cells

    def full(self) -> Bools:
        """Return bool[rows]: the nodes that are full of CPU, memory or pods."""
        found = np.zeros(len(self.names), dtype=np.bool_)
        for resource in ("cpu", "memory", PODS):
            found |= self.cells(resource) == FULL_CELL
        return found & self.used


class NodeTable:
    """The nodes of the cluster. Use on one thread.

    Attributes:
        version: changes with every write.
    """

    def __init__(self) -> None:
        self.version = 0
        self._names_version = 0
        self._nodes: list[Node | None] = []
        self._columns = {
            name: np.zeros(_FIRST_ROWS, dtype=np.int64) for name in ("zone", "pool", "flags", "created_ns")
        }
        self._zones, self._pools = TextCodes(), TextCodes()
        self._allocatable: dict[str, Ints] = {PODS: np.zeros(_FIRST_ROWS, dtype=np.int64)}
        self._requested: dict[str, Ints] = {PODS: np.zeros(_FIRST_ROWS, dtype=np.int64)}
        self._named = NamedRows(_FIRST_ROWS, self._columns, self._allocatable, self._requested)
        # By node name: the requests of pods whose node does not exist (yet).
        self._homeless: dict[str, Amounts] = {}
        self._frozen: NodeColumns | None = None

    def __len__(self) -> int:
        return len(self._named.rows)

    def freeze(self) -> NodeColumns:
        """Return a frozen copy of the columns. Call on the writing thread."""
        if self._frozen is not None and self._frozen.version == self.version:
            return self._frozen
        named, count = self._named, len(self._named.names)
        self._frozen = NodeColumns(
            version=self.version,
            names_version=self._names_version,
            names=named.names.copy(),
            nodes=self._nodes.copy(),
            rows=named.rows.copy(),
            used=named.used[:count].copy(),
            zones=self._zones.texts,
            pools=self._pools.texts,
            allocatable={name: values[:count].copy() for name, values in self._allocatable.items()},
            requested={name: values[:count].copy() for name, values in self._requested.items()},
            **{name: values[:count].copy() for name, values in self._columns.items()},
        )
        return self._frozen

    def put(self, node: Node, now_ns: int) -> None:
        """Add or update a node."""
        name, labels = node.metadata.name, node.metadata.labels
        row = self._named.rows.get(name)
        is_new = row is None
        before = None if row is None else self._nodes[row]
        # Compute everything that may fail before the first write.
        created_ns, allocatable = parse_instant(node.metadata.creation_timestamp), None
        if before is None or before.status.allocatable != node.status.allocatable:
            allocatable = node_amounts(node.status.allocatable)
        if row is None:
            row = self._named.add(name)
            if row == len(self._nodes):
                self._nodes.append(None)
        self._nodes[row] = node
        self.version += 1
        columns = self._columns
        if is_new or before is None or before.metadata.labels != labels:
            self._names_version += 1
            zone, pool = group_of(labels)
            columns["zone"][row] = self._zones.code(zone)
            columns["pool"][row] = self._pools.code(pool)
        columns["flags"][row] = CORDONED * node.spec.unschedulable + NOT_READY * (not is_ready(node))
        columns["created_ns"][row] = now_ns if created_ns is None else created_ns
        if allocatable is not None:
            for values in self._allocatable.values():
                values[row] = 0
            for resource, amount in allocatable.items():
                _column(self._allocatable, resource, len(self._named.used))[row] = amount
        if is_new and name in self._homeless:
            self._add(row, self._homeless.pop(name), 1)

    def remove(self, name: str) -> None:
        """Remove a node. Remember the requests of its pods in case it is added again."""
        row = self._named.remove(name)
        if row is None:
            return
        self.version += 1
        self._names_version += 1
        left = {resource: int(values[row]) for resource, values in self._requested.items() if values[row]}
        if left:
            self._homeless[name] = left
        for table in (self._allocatable, self._requested):
            for values in table.values():
                values[row] = 0
        self._nodes[row] = None

    def place(self, node: str, amounts: Mapping[str, int], sign: int) -> None:
        """Add a pod's requests to a node, or subtract them.

        Args:
            node: the node's name.
            amounts: the pod's requests, without the pod itself.
            sign: 1 to add, -1 to subtract.
        """
        taken = {**amounts, PODS: 1}
        row = self._named.rows.get(node)
        if row is not None:
            self.version += 1
            self._add(row, taken, sign)
            return
        kept = self._homeless.setdefault(node, {})
        for resource, amount in taken.items():
            kept[resource] = go.wrap(kept.get(resource, 0) + sign * amount)
        if not kept[PODS]:
            del self._homeless[node]

    def _add(self, row: int, amounts: Mapping[str, int], sign: int) -> None:
        for resource, amount in amounts.items():
            values = _column(self._requested, resource, len(self._named.used))
            # Sums beyond int64 wrap around, as in the scheduler.
            values[row] = go.wrap(int(values[row]) + sign * amount)


def _column(table: dict[str, Ints], resource: str, rows: int) -> Ints:
    found = table.get(resource)
    if found is None:
        found = table[resource] = np.zeros(rows, dtype=np.int64)
    return found
