"""The cluster as columns: nodes, their usage by pods, and the other objects that scheduling reads.

Every write is a delta; a `trial` journals its inverse. Caches of results read the logs of changed rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from bayplan.base.errors import InvariantError
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import (
    DEFAULT_GATES,
    AccountedRequests,
    HostPort,
    RequestGates,
    accounted_requests,
    host_ports,
)
from bayplan.state import pod_moves
from bayplan.state.affinity_terms import pod_terms
from bayplan.state.arrays import SMALL, Ints, largest_amount
from bayplan.state.columns import Columns
from bayplan.state.counters import Counter, Counters, DomainTable, Eligibility, Matches
from bayplan.state.host_ports import HostPorts
from bayplan.state.image_states import ImageStates
from bayplan.state.node_table import NodeTable
from bayplan.state.node_tree import NodeTree
from bayplan.state.object_catalog import ObjectCatalog
from bayplan.state.pod_info import (
    FIRST_RESOURCE,
    NON_ZERO_CPU,
    NON_ZERO_MEMORY,
    POD_COUNT,
    Amounts,
    Footprint,
    PodClass,
    PodInfo,
)
from bayplan.state.row_log import RowLog

MAX_SAFE_REQUEST = 1 << 62
"""Requests up to this limit keep all sums within int64, if all other amounts are small."""

Accounting: TypeAlias = Callable[[Pod, RequestGates, int], AccountedRequests]
"""Computes the requests that the scheduler's release counts for a pod on its node."""


class ClusterState:
    """The cluster as columns of int64, with deltas and undo.

    Args:
        request_gates: the feature gates that affect how requests are summed; also an attribute.
        account: the function that computes the requests to count for a pod on its node.

    Attributes:
        nodes: the columns of the nodes themselves.
        columns: all columns, in the form that compiled rules read.
        usage: int64[3 + resources, capacity], the usage of each node by its pods; rows as in `pod_info`.
        pods: every pod that is on a node or assumed on it, by key.
        pods_on: by row, its pods by key, in the order of their addition.
        counters: by row, the number of pods that match a selector or own an affinity term.
        catalog: other objects (Namespace, Service, PersistentVolumeClaim, ...) by kind.
        placements: if recorded, the placed (1) and removed (-1) pods, as (row, footprint, 1 or -1); else None.
        small: whether all amounts and sums are at least 0 and below 2^46, so that arithmetic can't overflow.
        change_log: the rows whose pods or node changed.
        node_log: the rows whose node was changed, added or removed.
        pod_log: the rows on which a pod got another start time, with unchanged resources (`replace_pod_version`).
    """

    def __init__(
        self, request_gates: RequestGates = DEFAULT_GATES, *, account: Accounting = accounted_requests
    ) -> None:
        self.request_gates = request_gates
        self._account = account
        self.nodes = NodeTable()
        self.usage: Ints = np.zeros((FIRST_RESOURCE + len(self.nodes.allocatable), self.nodes.capacity), dtype=np.int64)
        self.host_ports = HostPorts()
        self.pods: dict[str, PodInfo] = {}
        self.pods_on: list[dict[str, PodInfo]] = []
        self.catalog = ObjectCatalog()
        self.counters = Counters(self.nodes.capacity)
        self.placements: list[tuple[int, Footprint, int]] | None = None
        self.change_log = RowLog()
        self.node_log = RowLog()
        self.pod_log = RowLog()
        # Classes and counters live as long as pods or plans refer to them: the labels of each Job's pods are a new class.
        self._classes: WeakValueDictionary[tuple[str, tuple[tuple[str, str], ...], bool], PodClass]
        self._classes = WeakValueDictionary()
        # Pods with equal requests share a footprint, which takes a fifth of the memory of a bound pod.
        self._footprints: WeakValueDictionary[tuple[Amounts, tuple[HostPort, ...]], Footprint] = WeakValueDictionary()
        self._journal: list[Callable[[], object]] | None = None
        self._largest_sum = 0
        self.small = True
        # The number of pods on nodes by priority.
        self._priorities: dict[int, int] = {}
        self.columns = Columns()
        self._bind_columns()

    # Nodes.

    def add_node(self, node: Node) -> int:
        """Add a node, or replace the one with the same name; return its row."""
        row = self.nodes.row_of.get(node.metadata.name)
        if row is not None:
            self.update_node(node)
            return row
        row = self.nodes.add(node)
        self._fit_usage()
        while len(self.pods_on) < self.nodes.count:
            self.pods_on.append({})
        self._bound(self.nodes.allocatable[:, row])
        self._bind_columns()
        self._log_node(row)
        self._undo(lambda: self.remove_node(node.metadata.name))
        return row

    def update_node(self, node: Node) -> None:
        """Replace a node by a newer version; log the row only if the change may affect scheduling."""
        row = self.nodes.row_of[node.metadata.name]
        old = self.nodes.nodes[row]
        assert old is not None
        self.nodes.update(row, node)
        self._fit_usage()
        self._bound(self.nodes.allocatable[:, row])
        self._bind_columns()
        if _schedulable_part(old) != _schedulable_part(node):
            self._log_node(row)
        self._undo(lambda: self.update_node(old))

    def remove_node(self, name: str) -> None:
        """Remove a node, and its pods, about which nothing is known without the node."""
        row = self.nodes.row_of[name]
        for key in list(self.pods_on[row]):
            self.remove_pod(key)
        node = self.nodes.nodes[row]
        assert node is not None
        tree = self.nodes.tree.copy() if self._journal is not None else self.nodes.tree
        self.nodes.remove(row)
        self.host_ports.clear(row)
        self._bind_columns()
        self._log_node(row)
        self._undo(lambda: self._add_again(node, tree))

    def _log_node(self, row: int) -> None:
        self.node_log.append(row)
        self.change_log.append(row)

    def _add_again(self, node: Node, tree: NodeTree) -> None:
        """Undo the removal of a node; also restore the order in which nodes are visited."""
        self.add_node(node)
        self.nodes.tree = tree

    # Pods.

    def footprint(self, pod: Pod, earlier_sums: int = 0) -> Footprint:
        """Return the resources of a pod on its node; they hold for all pods with the same spec and resize status.

        `earlier_sums` matters only for pods for which `bayplan.objects.requests.repeats_overhead` returns True.
        """
        counted = self._account(pod, self.request_gates, earlier_sums)
        cpu_milli, memory_bytes = counted.non_zero_cpu_milli, counted.non_zero_memory_bytes
        amounts = {POD_COUNT: 1, NON_ZERO_CPU: cpu_milli, NON_ZERO_MEMORY: memory_bytes}
        for name, amount in counted.requests.items():
            amounts[FIRST_RESOURCE + self.register_resource(name)] = amount
        key = (tuple([each for each in sorted(amounts.items()) if each[1]]), host_ports(pod))
        found = self._footprints.get(key)
        if found is None:
            found = self._footprints[key] = Footprint(*key)
        return found

    def pod_class(self, pod: Pod) -> PodClass:
        """Return the class of a pod, which contains all data that label selectors can distinguish."""
        metadata = pod.metadata
        terminating = metadata.deletion_timestamp is not None
        key = (metadata.namespace, tuple(sorted(metadata.labels.items())), terminating)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = PodClass(metadata.namespace, metadata.labels, terminating)
            self.counters.register_class(found)
        return found

    def matching_counter(self, key: Hashable, matches: Matches) -> Counter:
        """Return the counter of the pods for which `matches` returns True; `key` must identify what it depends on."""
        return self.counters.matching(key, matches, self._classes.values())

    def domain_table(self, topology_key: str, counter: Counter, eligibility: Eligibility | None = None) -> DomainTable:
        """Return a counter's sums over the domains of a topology key, for eligible nodes; all callers share the table."""
        key = (topology_key, id(counter), eligibility.key if eligibility is not None else None)
        tables = self.counters.tables
        table = tables.get(key)
        if table is None:
            table = tables[key] = DomainTable(topology_key, counter, self.nodes, self.node_log, eligibility)
        return table

    def owned_counters(self, pod: Pod) -> tuple[Counter, ...]:
        """Return the counters of the affinity terms that a pod owns."""
        return tuple([self.counters.owned(term) for term in pod_terms(pod).all()])

    def pod_info(self, pod: Pod) -> PodInfo:
        """Return a new record of a pod, to be placed on a node."""
        key, priority = f"{pod.metadata.namespace}/{pod.metadata.name}", pod.spec.priority or 0
        return PodInfo(key, pod, self.footprint(pod), self.pod_class(pod), priority, self.owned_counters(pod))

    def place(self, info: PodInfo, row: int) -> None:
        """Add a pod to a row. The pod's key must not be in the state yet."""
        footprint = info.footprint
        self._move(info, row, 1)
        self._largest_sum += footprint.largest
        if self._largest_sum >= SMALL:
            self.small &= footprint.largest < SMALL
            self._largest_sum = self._bound(self.usage[:, : self.nodes.count].ravel())
        if footprint.host_ports:
            self._undo(partial(self.host_ports.restore, row, self.host_ports.used(row)))
            self.host_ports.add(row, footprint.host_ports)
        if self._journal is not None:
            self._journal.append(partial(self._move, info, row, -1))

    def _move(self, info: PodInfo, row: int, sign: int) -> None:
        """Add (1) or remove (-1) a pod on a row, without its host ports."""
        self.shift(info, row, sign)
        if self.placements is not None:
            self.placements.append((row, info.footprint, sign))

    def has_pods_below(self, priority: int) -> bool:
        """Return whether a pod on a node has a lower priority."""
        return min(self._priorities, default=priority) < priority

    def shift(self, info: PodInfo, row: int, sign: int) -> None:
        """Add (1) or remove (-1) a pod on a row. Only for this module and `PodMoves`; others call `place` and `remove_pod`.

        The caller must update host ports, the magnitudes of amounts (`small`), `placements` and the journal, or, like
        `PodMoves`, undo the shift before these are read.
        """
        if sign > 0:
            info.row = row
            self.pods[info.key] = self.pods_on[row][info.key] = info
        else:
            del self.pods[info.key], self.pods_on[row][info.key]
        nodes, priorities = info.pod_class.nodes, self._priorities
        alike, as_important = nodes.get(row, 0) + sign, priorities.get(info.priority, 0) + sign
        if alike:
            nodes[row] = alike
        else:
            del nodes[row]
        if as_important:
            priorities[info.priority] = as_important
        else:
            del priorities[info.priority]
        pod_moves.count_pod(self.columns, info, row, sign)
        self.change_log.append(row)

    def remove_pod(self, key: str) -> PodInfo:
        """Remove a pod from its node; return the pod's record."""
        info = self.pods[key]
        row = info.row
        if self._journal is not None:
            self._journal.append(partial(self._put_back, info, row, list(self.pods_on[row])))
        self._move(info, row, -1)
        ports = info.footprint.host_ports
        if ports:
            self._undo(partial(self.host_ports.restore, row, self.host_ports.used(row)))
            self.host_ports.remove(row, ports)
        return info

    def _put_back(self, info: PodInfo, row: int, order: list[str]) -> None:
        """Undo the removal of a pod. `order`: the keys of the row's pods before; preemption depends on their order."""
        self._move(info, row, 1)
        pods = self.pods_on[row]
        restored = {key: pods[key] for key in order}
        pods.clear()
        pods.update(restored)

    def update_pod(self, pod: Pod) -> None:
        """Replace a pod on a node by a newer version on the same node."""
        old = self.remove_pod(f"{pod.metadata.namespace}/{pod.metadata.name}")
        self.place(self.pod_info(pod), old.row)

    def replace_pod_version(self, info: PodInfo, pod: Pod) -> None:
        """Store a newer version of a pod with unchanged resources."""
        before = info.pod
        if before.status.start_time != pod.status.start_time:
            self.pod_log.append(info.row)
        info.replace_version(pod)

    # Magnitudes of amounts.

    def admit(self, amount: int) -> None:
        """Check an amount that a plugin will add to sums: if sums could then exceed int64, `small` becomes False."""
        if not 0 <= amount < MAX_SAFE_REQUEST:
            self.small = False

    def _bound(self, amounts: Ints) -> int:
        """Return the largest amount; if the amounts are not small, `small` becomes False."""
        largest = largest_amount(amounts)
        if largest >= SMALL:
            self.small = False
        return largest

    def register_resource(self, name: str) -> int:
        """Return the number of a resource; if it is new, assign one and add its row to every matrix."""
        number = self.nodes.resources.get(name)
        if number is None:
            number = self.nodes.register_resource(name)
            self._fit_usage()
        return number

    def _fit_usage(self) -> None:
        """Grow the usage matrix and the counters to the size of the node table."""
        wanted = (FIRST_RESOURCE + len(self.nodes.allocatable), self.nodes.capacity)
        if self.usage.shape != wanted:
            grown = np.zeros(wanted, dtype=np.int64)
            grown[: self.usage.shape[0], : self.usage.shape[1]] = self.usage
            self.usage = grown
            self.counters.grow(self.nodes.capacity)
            self._bind_columns()

    def _bind_columns(self) -> None:
        """Bind compiled rules to the current arrays, after a node changed or an array was replaced by a larger one."""
        nodes, columns = self.nodes, self.columns
        columns.count, columns.capacity = nodes.count, nodes.capacity
        columns.allocatable, columns.usage = nodes.allocatable, self.usage
        columns.allowed_pods, columns.taint_codes = nodes.allowed_pods, nodes.taint_codes
        columns.alive, columns.unschedulable = nodes.alive.view(np.uint8), nodes.unschedulable.view(np.uint8)
        columns.version += 1

    # Deltas.

    @contextmanager
    def trial(self) -> Iterator[ClusterState]:
        """Return a context manager that undoes all writes in its block at the end. Trials can be nested."""
        outer, journal, order = self._journal, list[Callable[[], object]](), list(self.pods)
        # Plugins write to the catalog themselves, so it keeps the journal, too.
        self._journal = self.catalog.journal = journal
        try:
            yield self
        finally:
            self._journal = self.catalog.journal = None
            for inverse in reversed(journal):
                inverse()
            self._journal = self.catalog.journal = outer
            if list(self.pods) != order:
                pods = {key: self.pods[key] for key in order}
                self.pods.clear()
                self.pods.update(pods)

    def _undo(self, inverse: Callable[[], object]) -> None:
        if self._journal is not None:
            self._journal.append(inverse)

    def fork(self) -> ClusterState:
        """Return an independent copy of the state; typed objects are shared, because they never change."""
        return _state_of(*self._contents())

    def __reduce__(self) -> tuple[Callable[..., ClusterState], tuple[Any, ...]]:
        """Pickle nodes, pods and objects, for worker processes; counters, logs and a trial's journal are left out."""
        return _state_of, self._contents()

    def _contents(self) -> tuple[Any, ...]:
        """Return an independent copy of the primary data: the arguments of `_state_of`."""
        return (
            self.request_gates,
            self._account,
            self.nodes.copy(),
            self.host_ports.copy(),
            self.catalog.copy(),
            self._largest_sum,
            self.small,
            [(i.key, i.pod, i.footprint, i.priority, bool(i.owned_counters), i.row) for i in self.pods.values()],
            [list(pods) for pods in self.pods_on],
        )

    def without_pods_and_images(self) -> ClusterState:
        """Return a read-only view of the same nodes without pods and images."""
        emptied = ClusterState(self.request_gates, account=self._account)
        emptied.pods, emptied.pods_on, emptied.catalog = self.pods, self.pods_on, self.catalog
        emptied.counters, emptied._classes = self.counters, self._classes
        emptied.change_log, emptied.node_log, emptied.pod_log = self.change_log, self.node_log, self.pod_log
        emptied._largest_sum, emptied.small = self._largest_sum, self.small
        emptied._priorities = self._priorities
        emptied.nodes = self.nodes.copy()
        emptied.nodes.images = ImageStates()
        emptied.usage = np.zeros_like(self.usage)
        emptied.host_ports = HostPorts()
        emptied.columns.bare = True
        emptied._bind_columns()
        return emptied

    def check_invariants(self) -> None:
        """Raise `InvariantError` if columns, pods and nodes contradict each other."""
        expected, priorities = np.zeros_like(self.usage), dict.fromkeys(self._priorities, 0)
        for key, info in self.pods.items():
            priorities[info.priority] = priorities.get(info.priority, 0) + 1
            if info.key != key or self.pods_on[info.row].get(key) is not info:
                raise InvariantError(f"pod {key} is not among the pods of its row {info.row}")
            vector = info.footprint.vector
            expected[: len(vector), info.row] += vector
        if priorities != self._priorities:
            raise InvariantError(f"{priorities} pods by priority, but {self._priorities} are counted")
        if not np.array_equal(expected, self.usage):
            resource, row = (int(places[0]) for places in np.nonzero(expected != self.usage))
            raise InvariantError(
                f"usage[{resource}, {row}] of node {self.nodes.names[row]} is {self.usage[resource, row]}, "
                f"its pods take {expected[resource, row]}"
            )
        if sum(map(len, self.pods_on)) != len(self.pods):
            raise InvariantError(f"{len(self.pods)} pods, but {sum(map(len, self.pods_on))} on rows")
        for name, row in self.nodes.row_of.items():
            if self.nodes.names[row] != name or not self.nodes.alive[row]:
                raise InvariantError(f"node {name} is not in row {row}")
        if int(self.nodes.alive[: self.nodes.count].sum()) != len(self.nodes):
            raise InvariantError("the number of rows in use differs from the number of nodes")
        counts = np.zeros(self.nodes.capacity, dtype=np.int64)
        for pod_class in self._classes.values():
            for row, count in pod_class.nodes.items():
                counts[row] += count
        if not np.array_equal(counts, self.usage[POD_COUNT]):
            raise InvariantError("the pods of all classes are not the pods on rows")
        self.counters.check_invariants(self.pods.values())


def _state_of(
    request_gates: RequestGates,
    account: Accounting,
    nodes: NodeTable,
    host_ports: HostPorts,
    catalog: ObjectCatalog,
    largest_sum: int,
    small: bool,
    pods: list[tuple[str, Pod, Footprint, int, bool, int]],
    pods_on: list[list[str]],
) -> ClusterState:
    """Return a state with these contents.

    `pods` are key, pod, footprint, priority, whether it owns affinity terms, and row; `pods_on` are the keys by row.
    """
    state = ClusterState(request_gates, account=account)
    state._largest_sum, state.small = largest_sum, small
    state.nodes, state.host_ports, state.catalog = nodes, host_ports, catalog
    state._fit_usage()
    state._bind_columns()
    state.pods_on = [{} for _ in pods_on]
    for key, pod, footprint, priority, owns, row in pods:
        owned = state.owned_counters(pod) if owns else ()
        state.shift(PodInfo(key, pod, footprint, state.pod_class(pod), priority, owned), row, 1)
    state.pods_on = [{key: state.pods[key] for key in keys} for keys in pods_on]
    return state


def _schedulable_part(node: Node) -> tuple[object, ...]:
    """Return the data of a node on which decisions depend: not conditions and versions, which change all the time."""
    metadata, status = node.metadata, node.status
    described = (status.allocatable, status.capacity, status.images, status.declared_features)
    return (metadata.labels, metadata.annotations, node.spec, *described)
