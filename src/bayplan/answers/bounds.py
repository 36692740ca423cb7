"""Bounds on how good an answer about nodes can be: by resource amounts alone, and by packing whole pods with OR-tools.

The relaxation compares only amounts: pods may be split and placed anywhere. For each resource, the free capacity of the
remaining nodes (allocatable minus the requests of DaemonSet pods and mirror pods) must hold the requests of all other
pods. The fewest nodes that can do so are the largest ones, so the bound for one resource is exact; the result is the
smallest bound over all resources. Rules such as affinity or spreading can only reduce the true number.

The OR-tools models, for small and medium clusters, are tighter relaxations: a pod stays whole, all resources count at
once, and pods avoid nodes whose taints, labels or cordon exclude them. The models ignore rules about other pods,
volumes and ports, so their bounds hold for every answer. If the search stops early, it returns the best bound proved so
far. The work limit is deterministic, and therefore so is the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.node_shapes import NodeShape
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.base.extras import named_extras
from bayplan.engine.records import RecordLevel
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.objects.resource import DeviceClass
from bayplan.objects.selectors import compile_required_node_affinity, tolerates
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, CpSolver, IntVar

RELAXATION = "relaxation: only amounts count, and pods may be split and run on any node"

PACKING = "packing by OR-Tools: whole pods, all resources, taints, labels and cordons"

MAX_VARIABLES = 20_000
"""Maximum number of variables of a model. Larger models take minutes, so the relaxation is used instead."""

MAX_WORK = 20.0
"""Maximum work of a search, in the solver's deterministic seconds, which are about as long as real ones."""

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class RemovalBound(msgspec.Struct, frozen=True, kw_only=True):
    """An upper bound on the number of nodes that can be removed, and on the savings.

    Attributes:
        nodes: the maximum number of nodes that could be removed.
        price: the maximum saving, in the unit of the given prices.
        resource: the resource that limits the number; "" if none does, or if packing gives a lower number than amounts
            alone.
        method: the method that found the bound, in words.
    """

    nodes: int
    price: float
    resource: str
    method: str


def removal_bound(cluster: QuestionCluster, candidates: Sequence[str], prices: Mapping[str, float]) -> RemovalBound:
    """Return an upper bound on how many of the candidates can be removed, by amounts alone.

    Args:
        cluster: the current cluster.
        candidates: the nodes that may be removed.
        prices: the price of each node; a node without a price counts 1.
    """
    state = cluster.state
    count = state.nodes.count
    fixed = np.zeros((len(state.usage), count), dtype=np.int64)
    for info in state.pods.values():
        if not is_recreated_elsewhere(info.pod):
            vector = info.footprint.vector
            fixed[: len(vector), info.row] += vector
    alive = state.nodes.alive[:count]
    may_go = np.zeros(count, dtype=np.bool_)
    may_go[[state.nodes.row_of[name] for name in candidates]] = True
    price = np.array([prices.get(name or "", 1.0) for name in state.nodes.names[:count]])
    best, best_price, resource = int(may_go.sum()), float(price[may_go].sum()), ""
    for name, offered, usage, taken in _resources(cluster, fixed, _Rules(cluster).rows(state)):
        rooms = np.maximum(offered - taken, 0)
        # The requests that exceed an overcommitted node's capacity need not fit elsewhere.
        needed = int((usage - taken)[alive].sum()) - int(np.maximum(usage - offered, 0)[alive].sum())
        spare = needed - int(rooms[alive & ~may_go].sum())
        if spare <= 0:
            continue
        sizes = rooms[may_go]
        by_size = np.argsort(-sizes, kind="stable")
        sums = np.cumsum(sizes[by_size])
        stay = int(np.searchsorted(sums, spare)) + 1
        nodes = max(len(sizes) - stay, 0)
        if nodes < best:
            best, resource = nodes, name
        best_price = min(best_price, _price_bound(sizes, price[may_go], spare))
    # The bound on the price splits nodes; no set of `best` whole nodes costs more than the most expensive ones.
    best_price = min(best_price, float(np.sort(price[may_go])[::-1][:best].sum()))
    return RemovalBound(nodes=best, price=best_price, resource=resource, method=RELAXATION)


def _resources(cluster: QuestionCluster, fixed: Ints, rows: Sequence[int]) -> list[tuple[str, Ints, Ints, Ints]]:
    """Return (name, allocatable, usage, usage of pods that stay) for each of the given rows: resources, and pods."""
    state = cluster.state
    count = state.nodes.count
    names = {FIRST_RESOURCE + number: name for name, number in state.nodes.resources.items()}
    return [
        (names.get(row, "pods"), _offered(state, row), state.usage[row, :count], fixed[row])
        for row in rows
        if row < len(state.usage)
    ]


def _offered(state: ClusterState, row: int) -> Ints:
    """Return int64[nodes]: the allocatable amounts of a row of the usage matrix."""
    found = state.nodes.allowed_pods if row == POD_COUNT else state.nodes.allocatable[row - FIRST_RESOURCE]
    return found[: state.nodes.count]


def _price_bound(sizes: Ints, prices: np.ndarray, needed: int) -> float:
    """Return an upper bound on the savings if the remaining nodes, which may be fractions of nodes, must offer `needed`."""
    order = np.argsort(prices / np.maximum(sizes, 1), kind="stable")
    cost, left = 0.0, needed
    for place in order.tolist():
        size = int(sizes[place])
        if not size:
            continue
        cost += float(prices[place]) * min(left / size, 1.0)
        left -= size
        if left <= 0:
            break
    return float(prices.sum()) - cost


# --- packing ----------------------------------------------------------------------------------------------------------


class _Group(msgspec.Struct):
    """Identical pods: one pod's amounts, the rows of nodes that may run it, the number of pods, and the row they leave or -1."""

    vector: Ints
    rows: list[int]
    count: int
    leaves: int


class _Rules:
    """Predicates for the nodes that may run a pod, regardless of the pods on them, and the amounts that count.

    Args:
        cluster: the cluster whose scheduler's filters apply.
    """

    def __init__(self, cluster: QuestionCluster) -> None:
        profiles = cluster.scheduler.make(record_level=RecordLevel.OFF).profiles.values()
        names = [{plugin.name for plugin in profile.filter} for profile in profiles]
        found = set.intersection(*names) if names else set[str]()
        self._fits = [
            plugin for profile in profiles for plugin in profile.filter if isinstance(plugin, NodeResourcesFit)
        ]
        self.fit = len(self._fits) == len(names) > 0
        self._devices = any(True for _ in cluster.all(DeviceClass))
        self._taints = "TaintToleration" in found
        self._labels = "NodeAffinity" in found
        self._cordon = "NodeUnschedulable" in found

    def rows(self, state: ClusterState) -> list[int]:
        """Return the rows of the usage matrix that filters compare for pods of any profile.

        Ignored resources do not count, nor do those that devices may serve.
        """
        if not self.fit:
            return []
        requests = ResourceRequirements(requests=dict.fromkeys(state.nodes.resources, "1"))
        probe = Pod(spec=PodSpec(containers=(Container(name="all", resources=requests),)))
        found = {FIRST_RESOURCE + number for number in state.nodes.resources.values()}
        for plugin in self._fits:
            spec = plugin.compile(probe, state)
            served = {request.number for request in spec.delegable} if self._devices else set[int]()
            found &= {FIRST_RESOURCE + each.number for each in spec.requests if each.number not in served}
        return [POD_COUNT, *sorted(found)]

    def ignores_cordons(self, pod: Pod) -> bool:
        """Return whether a pod may run on a cordoned node."""
        return not self._cordon or any(
            tolerates(each, _CORDON, comparison_operators=True) for each in pod.spec.tolerations
        )

    def of(self, pod: Pod) -> Callable[[Node], bool]:
        """Return a predicate that is true for nodes that may run this pod."""
        required = compile_required_node_affinity(pod)
        tolerations = pod.spec.tolerations

        def tolerated(taint: Taint) -> bool:
            return any(tolerates(each, taint, comparison_operators=True) for each in tolerations)

        def may(node: Node) -> bool:
            if self._cordon and node.spec.unschedulable and not tolerated(_CORDON):
                return False
            hard = (taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute"))
            if self._taints and not all(map(tolerated, hard)):
                return False
            return not self._labels or required.matches(node.metadata.labels, node.metadata.name)

        return may


def packed_removal_bound(
    cluster: QuestionCluster, candidates: Sequence[str], prices: Mapping[str, float], relaxed: RemovalBound
) -> RemovalBound:
    """Return a tighter bound on how many of the candidates can be removed; `relaxed` if the model would be too large.

    Args:
        cluster: the current cluster.
        candidates: the nodes that may be removed.
        prices: the price of each node; a node without a price counts 1.
        relaxed: the bound of the relaxation.

    Raises:
        MissingExtra: OR-tools is not installed.
    """
    rules, state = _Rules(cluster), cluster.state
    row_of = state.nodes.row_of
    leaving = [
        (info.pod, info.footprint.vector, info.row) for info in state.pods.values() if is_recreated_elsewhere(info.pod)
    ]
    may_go = {row_of[name] for name in candidates}
    free = _free(state)
    groups = _groups([each for each in leaving if each[2] in may_go], state, free, rules)
    if not rules.fit or sum(len(group.rows) for group in groups) + len(may_go) > MAX_VARIABLES:
        return relaxed
    weights = {row_of[name]: prices.get(name, 1.0) for name in candidates}
    most = _most_removed(groups, free, dict.fromkeys(weights, 1.0))
    price = _most_removed(groups, free, weights) if prices else most
    if most is None or price is None:
        return relaxed
    nodes = math.floor(most + 1e-6)
    return RemovalBound(
        nodes=min(nodes, relaxed.nodes),
        price=min(price if prices else float(nodes), relaxed.price),
        resource=relaxed.resource if nodes >= relaxed.nodes else "",
        method=PACKING,
    )


def addition_bound(
    cluster: QuestionCluster, pods: Sequence[Pod], shapes: Sequence[NodeShape], *, preempts: bool = False
) -> float:
    """Return a lower bound on the price of nodes for some waiting pods, by amounts alone.

    It is the highest of all resources: the demand beyond the free room, at the lowest price per unit.

    Args:
        cluster: the current cluster.
        pods: the pods that the answer places.
        shapes: the available shapes.
        preempts: whether the pods may evict others; then the room of all pods that one of them could evict is free.
    """
    rules, state = _Rules(cluster), cluster.state
    # This may add resource rows to the state for good, so read the number of rows afterwards.
    offered = [_capacity(cluster, shape) for shape in shapes]
    count = state.nodes.count
    usable = state.nodes.alive[:count].copy()
    if not any(map(rules.ignores_cordons, pods)):
        usable &= ~state.nodes.unschedulable[:count]
    usage = _lasting_usage(state, pods) if preempts else state.usage[:, :count]
    width = max([len(state.usage), *map(len, offered)])
    table = np.array([np.pad(each, (0, width - len(each))) for each in offered], dtype=np.float64)
    prices = np.array([shape.price for shape in shapes])
    counts: dict[bytes, int] = {}
    vectors: dict[bytes, np.ndarray] = {}
    for pod in pods:
        vector = np.pad(state.footprint(pod).vector, (0, width))[:width].astype(np.float64)
        vectors[vector.tobytes()] = vector
        counts[vector.tobytes()] = counts.get(vector.tobytes(), 0) + 1
    bound, rows = 0.0, rules.rows(state)
    for row in rows:
        demands = []
        for key, vector in vectors.items():
            fits = (table[:, rows] >= vector[rows]).all(axis=1) & (table[:, row] > 0)
            if vector[row] and fits.any():
                rate = float((prices[fits] / table[fits, row]).min())
                demands.append((rate, float(vector[row]) * counts[key]))
        free = float(np.maximum(_offered(state, row) - usage[row], 0)[usable].sum()) if row < len(usage) else 0.0
        # Free room costs nothing: assume that the most expensive demands use it.
        cost = 0.0
        for rate, amount in sorted(demands, reverse=True):
            paid = max(amount - free, 0.0)
            free = max(free - amount, 0.0)
            cost += rate * paid
        bound = max(bound, cost)
    return bound


def _lasting_usage(state: ClusterState, pods: Sequence[Pod]) -> Ints:
    """Return int64[usage rows, nodes]: the usage by pods that none of the given pods could evict."""
    highest = max((pod.spec.priority or 0 for pod in pods), default=0)
    found = np.zeros((len(state.usage), state.nodes.count), dtype=np.int64)
    for info in state.pods.values():
        if (info.pod.spec.priority or 0) >= highest:
            vector = info.footprint.vector
            found[: len(vector), info.row] += vector
    return found


def _capacity(cluster: QuestionCluster, shape: NodeShape) -> np.ndarray:
    """Return the capacity of a node of a shape, as a vector with the rows of the usage matrix."""
    with cluster.state.trial() as state:
        row = state.add_node(shape.node("shape"))
        found = np.zeros(FIRST_RESOURCE + len(state.nodes.allocatable), dtype=np.float64)
        found[POD_COUNT] = state.nodes.allowed_pods[row]
        found[FIRST_RESOURCE:] = state.nodes.allocatable[:, row]
    return found


def packed_addition_bound(
    cluster: QuestionCluster, pods: Sequence[Pod], shapes: Sequence[NodeShape], price: float, relaxed: float
) -> tuple[float, str]:
    """Return a lower bound on the price of nodes for some waiting pods, and the method that found it.

    If the model would be too large, return `relaxed` and "".

    Args:
        cluster: the current cluster.
        pods: the pods that the answer places.
        shapes: the available shapes.
        price: the price of the answer.
        relaxed: the bound of the relaxation.

    Raises:
        MissingExtra: OR-tools is not installed.
    """
    rules = _Rules(cluster)
    with cluster.state.trial() as state:
        new: dict[int, tuple[int, float]] = {}
        for number, shape in enumerate(shapes):
            # The quotient of two rounded prices may be slightly less than the number of nodes in the answer.
            most = len(pods) if shape.price <= 0 else min(int(price / shape.price * (1 + 1e-9)), len(pods))
            for copy in range(most if shape.most is None else min(most, shape.most)):
                new[state.add_node(shape.node(f"bound-{number}-{copy}"))] = (number, shape.price)
            if len(new) * len(pods) > 50 * MAX_VARIABLES:
                return relaxed, ""
        free = _free(state)
        groups = _groups([(pod, state.footprint(pod).vector, -1) for pod in pods], state, free, rules)
    if not rules.fit or sum(len(group.rows) for group in groups) + len(new) > MAX_VARIABLES:
        return relaxed, ""
    packed = _least_price(groups, free, new)
    return (relaxed, "") if packed is None else (max(relaxed, packed), PACKING)


def _free(state: ClusterState) -> Ints:
    """Return int64[usage rows, nodes]: the free amounts of each node; 0 for rows without a node."""
    count = state.nodes.count
    offered = np.zeros((FIRST_RESOURCE + len(state.nodes.allocatable), count), dtype=np.int64)
    offered[POD_COUNT] = state.nodes.allowed_pods[:count]
    offered[FIRST_RESOURCE:] = state.nodes.allocatable[:, :count]
    used = np.asarray(state.usage[:, :count])
    offered[: len(used)] -= used
    found: Ints = np.where(state.nodes.alive[:count], np.maximum(offered, 0), 0)
    return found


def _groups(pods: Sequence[tuple[Pod, Ints, int]], state: ClusterState, free: Ints, rules: _Rules) -> list[_Group]:
    """Group identical pods on the same node, with the other rows that may run them.

    `pods`: tuples of pod, footprint vector, and the row that the pod leaves (-1 for none).
    """
    found: dict[tuple[bytes, bytes, int], _Group] = {}
    static: dict[bytes, np.ndarray] = {}
    counted = rules.rows(state)
    nodes = state.nodes.nodes
    for pod, narrow, leaves in pods:
        spec = pod.spec
        key = msgspec.msgpack.encode(
            (spec.tolerations, spec.node_selector, spec.affinity and spec.affinity.node_affinity)
        )
        if key not in static:
            may = rules.of(pod)
            static[key] = np.array([node is not None and may(node) for node in nodes[: free.shape[1]]], dtype=np.bool_)
        vector = np.zeros(len(free), dtype=np.int64)
        vector[counted] = np.pad(narrow, (0, len(free) - len(narrow)))[counted]
        fits = static[key] & (free[counted] >= vector[counted, None]).all(axis=0)
        if leaves >= 0:
            fits[leaves] = False
        group = found.setdefault(
            (vector.tobytes(), fits.tobytes(), leaves), _Group(vector, np.flatnonzero(fits).tolist(), 0, leaves)
        )
        group.count += 1
    return list(found.values())


# --- models -----------------------------------------------------------------------------------------------------------


def _model() -> tuple[CpModel, CpSolver]:
    with named_extras():
        from ortools.sat.python import cp_model
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed, parameters.max_deterministic_time = 1, 0, MAX_WORK
    return cp_model.CpModel(), solver


def _place(model: CpModel, groups: Sequence[_Group], free: Ints, is_open: Mapping[int, IntVar]) -> list[list[IntVar]]:
    """Add variables for how many pods of each group are placed on each of the group's rows, and return them.

    Rows in `is_open` take pods only if their variable is 1.
    """
    placed = [[model.new_int_var(0, group.count, "") for _ in group.rows] for group in groups]
    incoming: dict[int, list[tuple[_Group, IntVar]]] = {}
    for group, counts in zip(groups, placed, strict=True):
        for row, count in zip(group.rows, counts, strict=True):
            incoming.setdefault(row, []).append((group, count))
    for row, parts in incoming.items():
        for resource in (POD_COUNT, *range(FIRST_RESOURCE, len(free))):
            terms = [int(group.vector[resource]) * count for group, count in parts if group.vector[resource]]
            if terms:
                room = int(free[resource, row])
                model.add(sum(terms) <= (room * is_open[row] if row in is_open else room))
    return placed


def _least_sum(model: CpModel, solver: CpSolver, terms: Sequence[tuple[float, IntVar]]) -> float | None:
    """Return a lower bound on the sum of products: the optimum, or the bound proved when the search stopped; else None."""
    # The solver rounds the factors to about six decimals, which would be too few for small prices.
    unit = max((factor for factor, _ in terms), default=0.0) or 1.0
    model.minimize(sum(factor / unit * variable for factor, variable in terms))
    status = solver.status_name(solver.solve(model))
    # The answer itself is a solution.
    assert status not in ("INFEASIBLE", "MODEL_INVALID"), status
    return max(float(solver.best_objective_bound) * unit, 0.0) if status in ("OPTIMAL", "FEASIBLE") else None


def _most_removed(groups: Sequence[_Group], free: Ints, weights: Mapping[int, float]) -> float | None:
    """Return an upper bound on the total weight of removed rows, or None."""
    model, solver = _model()
    stays = {row: model.new_bool_var("") for row in weights}
    placed = _place(model, groups, free, stays)
    for group, counts in zip(groups, placed, strict=True):
        model.add(sum(counts) == group.count - group.count * stays[group.leaves])
    total = sum(weights.values())
    least = _least_sum(model, solver, [(weight, stays[row]) for row, weight in weights.items()])
    return None if least is None else total - least


def _least_price(groups: Sequence[_Group], free: Ints, new: Mapping[int, tuple[int, float]]) -> float | None:
    """Return a lower bound on the price of new rows, or None."""
    model, solver = _model()
    used = {row: model.new_bool_var("") for row in new}
    placed = _place(model, groups, free, used)
    for group, counts in zip(groups, placed, strict=True):
        model.add(sum(counts) == group.count)
    # Nodes of one shape are equal, so use them in order to exclude symmetric solutions.
    rows = list(new)
    for row, following in pairwise(rows):
        if new[row][0] == new[following][0]:
            model.add_implication(used[following], used[row])
    return _least_sum(model, solver, [(price, used[row]) for row, (_, price) in new.items()])
