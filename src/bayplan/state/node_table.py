"""Nodes as rows: the columns that describe the nodes themselves. Their usage by pods is in cluster_state.py."""

from __future__ import annotations

import numpy as np

from bayplan.objects.node import Node, Taint
from bayplan.objects.requests import node_amounts
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.image_states import ImageStates
from bayplan.state.label_column import LabelColumn
from bayplan.state.node_tree import NodeTree
from bayplan.state.resource_table import FIRST_RESOURCES, PODS

FIRST_CAPACITY = 64

_COLUMNS = ("alive", "allocatable", "allowed_pods", "unschedulable", "taint_codes")
_TABLES = ("resources", "names", "nodes", "row_of", "free_rows", "taint_sets", "_taint_index", "images", "tree")
_COPIED = (*_COLUMNS, *_TABLES)
"""The attributes of a `NodeTable` that `copy` copies with their own `copy` method."""


class NodeTable:
    """The columns of nodes. A node has the same row as long as it exists; freed rows are reused.

    Attributes:
        count: the number of rows in use, including freed ones.
        names, nodes: the name and the typed node by row; None in a freed row.
        alive: bool[capacity], False in freed rows.
        resources: the number of each resource. Amounts are in milli-CPU for cpu, and plain values for all others.
        allocatable: int64[resources, capacity].
        allowed_pods: int64[capacity].
        unschedulable: bool[capacity].
        taint_codes: intp[capacity], indexes in `taint_sets`.
        taint_sets: the distinct taint lists of nodes, in the order in which they appeared.
    """

    def __init__(self) -> None:
        self.resources = {name: number for number, name in enumerate(FIRST_RESOURCES)}
        self.count = 0
        self.capacity = FIRST_CAPACITY
        self.names: list[str | None] = []
        self.nodes: list[Node | None] = []
        self.row_of: dict[str, int] = {}
        self.free_rows: list[int] = []
        self.alive: Bools = np.zeros(self.capacity, dtype=np.bool_)
        self.allocatable: Ints = np.zeros((len(self.resources), self.capacity), dtype=np.int64)
        self.allowed_pods: Ints = np.zeros(self.capacity, dtype=np.int64)
        self.unschedulable: Bools = np.zeros(self.capacity, dtype=np.bool_)
        self.taint_codes: Index = np.zeros(self.capacity, dtype=np.intp)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self._taint_index: dict[tuple[Taint, ...], int] = {(): 0}
        self._labels: dict[str, LabelColumn] = {}
        self.images = ImageStates()
        self.tree = NodeTree()

    def __len__(self) -> int:
        return len(self.row_of)

    def add(self, node: Node) -> int:
        """Assign a row to a node with a new name, fill the row, and return its number."""
        row = self.free_rows.pop() if self.free_rows else self.count
        if row == self.count:
            self.count += 1
            self.names.append(None)
            self.nodes.append(None)
            if self.count > self.capacity:
                self._grow(max(self.capacity * 2, self.count))
        name = node.metadata.name
        self.names[row] = name
        self.row_of[name] = row
        self.alive[row] = True
        self._fill(row, node)
        self.tree.add(node)
        return row

    def update(self, row: int, node: Node) -> None:
        """Replace the node of a row by a newer version."""
        old = self.nodes[row]
        assert old is not None
        self.images.remove_node(row, old)
        self.tree.update(old, node)
        self._fill(row, node)

    def remove(self, row: int) -> None:
        """Remove a node; its row may then be used for another."""
        node = self.nodes[row]
        name = self.names[row]
        assert node is not None
        assert name is not None
        self.images.remove_node(row, node)
        self.tree.remove(node)
        del self.row_of[name]
        self.names[row] = None
        self.nodes[row] = None
        self.alive[row] = False
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        self.unschedulable[row] = False
        self.taint_codes[row] = 0
        for column in self._labels.values():
            column.set(row, None)
        self.free_rows.append(row)

    def label_column(self, key: str) -> LabelColumn:
        """Return the column of a label key; built from the nodes on first use, then maintained."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(key, self.capacity)
            for row, node in enumerate(self.nodes):
                if node is not None:
                    column.set(row, node.metadata.labels.get(key))
        return column

    def register_resource(self, name: str) -> int:
        """Return the number of a resource; if it is new, assign one and add a row of zeros."""
        number = self.resources.setdefault(name, len(self.resources))
        rows = len(self.allocatable)
        if number >= rows:
            # Grow by half: with thousands of resources, growing by a few rows each time would copy the table too often.
            wanted = max(number + 4, rows + rows // 2)
            grown = np.zeros((wanted, self.capacity), dtype=np.int64)
            grown[:rows] = self.allocatable
            self.allocatable = grown
        return number

    def _fill(self, row: int, node: Node) -> None:
        self.nodes[row] = node
        amounts = node_amounts(node.status.allocatable)
        self.allowed_pods[row] = amounts.pop(PODS, 0)
        # A new resource may replace the table, so all are registered first.
        numbers = [self.register_resource(name) for name in amounts]
        self.allocatable[:, row] = 0
        for number, amount in zip(numbers, amounts.values(), strict=True):
            self.allocatable[number, row] = amount
        self.unschedulable[row] = node.spec.unschedulable
        taints = node.spec.taints
        code = self._taint_index.get(taints)
        if code is None:
            code = self._taint_index[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        self.taint_codes[row] = code
        labels = node.metadata.labels
        for key, column in self._labels.items():
            column.set(row, labels.get(key))
        self.images.add_node(row, node)

    def _grow(self, capacity: int) -> None:
        def wider(old: Ints) -> Ints:
            new = np.zeros((*old.shape[: old.ndim - 1], capacity), dtype=old.dtype)
            new[..., : self.capacity] = old
            return new

        for name in _COLUMNS:
            setattr(self, name, wider(getattr(self, name)))
        for column in self._labels.values():
            column.grow(capacity)
        self.capacity = capacity

    def copy(self) -> NodeTable:
        """Return an independent copy; the immutable typed nodes are shared."""
        other = NodeTable()
        other.count, other.capacity = self.count, self.capacity
        for name in _COPIED:
            setattr(other, name, getattr(self, name).copy())
        other._labels = {key: column.copy() for key, column in self._labels.items()}
        return other

    def __reduce__(self) -> tuple[object, ...]:
        names = ("count", "capacity", "_labels", *_COPIED)
        return NodeTable, (), (None, {name: getattr(self, name) for name in names})
