"""Which nodes can be removed, and in which order, so that every placed pod still has a node; and where each pod moves.

All nodes of the answer are cordoned first, then drained one after another, so that each pod moves once. Nodes are
ordered by how much would have to move. A node that can't be emptied is restored and stays. The drain of the others is
replayed from the beginning until it empties all of them: the answer is a drain that the scheduler has executed from
beginning to end. In small clusters, other orders are tried too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec
import numpy as np
from msgspec.structs import replace

from bayplan.analysis.rows import Rows
from bayplan.answers.bounds import RemovalBound, packed_removal_bound, removal_bound
from bayplan.answers.copies import replacement
from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.drain_rules import Budgets, DrainOptions, Obstacle, obstacles
from bayplan.answers.node_groups import group_of
from bayplan.answers.prices import unpriced_note
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.base.random_streams import RandomStreams
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.node_prices import price_of
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT

MAX_PASSES = 12
"""Maximum number of replays. Each leaves out at least one node, and the last ones leave out very few."""

PATIENT_PASSES = 3
"""Number of replays after which each replay drops twice as many nodes, so that large clusters finish.

In addition to the nodes that were left out, it drops the same number of nodes from the end of the order.
"""

MAX_RETRIES = 3
"""Maximum number of times that nodes left out are tried again, after the other nodes are gone."""

MAX_RETRIED_MOVES = 2_000
"""Number of moves above which nodes left out are not tried again.

With 15,000 moves (5,000 nodes), this took twice as long and removed one more node.
"""

MAX_OTHER_ORDERS, MAX_RETRIED_PODS = 40, 4_000
"""Maximum number of other orders to try, and of pods of the cluster, times the orders: one to three seconds.

On 80 random clusters of 5 to 9 nodes, this found the largest set on all, and without on 70. With 100 to 1,000 nodes, 40
orders took ten times as long and removed at most one more node.
"""

MAX_MISSES = 50
"""Number of consecutive nodes that can't be emptied after which a pass ends. Only nodes beyond the bound are counted."""


class RemovedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node that can be removed.

    Attributes:
        order: 1 for the node that is drained first.
        node, zone, pool: the name, zone and node pool.
        pods: the number of its pods that move.
        ends: the number of its pods that end with the node, such as pods of DaemonSets and mirror pods.
        price: the price of the node.
    """

    order: int
    node: str
    zone: str
    pool: str
    pods: int
    ends: int
    price: float


class MovedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that moves to another node. `order` is the order of the drained node."""

    order: int
    pod: str
    from_node: str
    to_node: str


class KeptNode(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that can't be removed.

    Attributes:
        node: the name of the node.
        pod: the pod that prevents its removal, or "".
        reason: why the pod can't be evicted, or finds no other node.
        is_rule: whether a rule of the drain forbids the removal; otherwise a pod finds no other node.
    """

    node: str
    pod: str
    reason: str
    is_rule: bool


class RemovalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes can be removed.

    Attributes:
        nodes: the number of nodes in the cluster.
        candidates: the number of nodes that may be removed.
        most: the maximum number of nodes to remove; None for no limit.
        removed, moves, kept: see the types of their rows.
        price: the price of the removed nodes.
        has_prices: whether any node has a price; otherwise each counts 1.
        bound: the maximum number of nodes that could be removed, at most `most`, and how it was determined.
        passes: the number of replays of the drain.
        assumptions: the assumptions behind the answer, in sentences.
    """

    nodes: int
    candidates: int
    most: int | None
    removed: Rows[RemovedNode]
    moves: Rows[MovedPod]
    kept: Rows[KeptNode]
    price: float
    has_prices: bool
    bound: RemovalBound
    passes: int
    assumptions: Sequence[str]


def nodes_to_remove(
    cluster: QuestionCluster,
    candidates: Collection[str] | None = None,
    *,
    prices: Mapping[str, float] | None = None,
    options: DrainOptions | None = None,
    most: int | None = None,
    packing: bool = False,
) -> RemovalAnswer:
    """Return which nodes can be drained and removed with every placed pod still placed.

    Args:
        cluster: the current cluster.
        candidates: the names of the nodes that may be removed; None for all nodes.
        prices: the prices by node, by default those of the annotation ``bayplan.io/price``. The answer saves as much as
            possible, so without prices, it has as many nodes as possible.
        options: the options of the drain.
        most: the maximum number of nodes to remove; None for no limit.
        packing: whether to find a tighter bound with OR-tools, if the model is not too large.

    Raises:
        MissingExtra: OR-tools is needed and not installed.
    """
    if prices is None:
        prices = {node.metadata.name: price for node in cluster.all(Node) if (price := price_of(node)) is not None}
    return _Removal(cluster, candidates, prices, options or DrainOptions(), most, packing).run()


class _Pass(msgspec.Struct):
    """One drain: the emptied nodes in order, the moves of their pods, and why each other node stays."""

    removed: list[str]
    moves: list[MovedPod]
    left_out: dict[str, Obstacle]


class _Removal:
    def __init__(
        self,
        cluster: QuestionCluster,
        candidates: Collection[str] | None,
        prices: Mapping[str, float],
        options: DrainOptions,
        most: int | None,
        packing: bool,
    ) -> None:
        self._cluster = cluster
        self._prices = prices
        self._options = options
        self._most = most
        self._packing = packing
        self._budgets = Budgets(cluster.all(PodDisruptionBudget))
        state = cluster.state
        names = list(state.nodes.row_of) if candidates is None else [n for n in candidates if n in state.nodes.row_of]
        self._names = names
        self._blocked: dict[str, Obstacle] = {}
        for name in names:
            found = obstacles(_pods_on(state, name), self._budgets, options)
            if found:
                self._blocked[name] = found[0]

    def run(self) -> RemovalAnswer:
        """Find the nodes to remove, replaying the drain until it empties all of its nodes."""
        free = [name for name in self._names if name not in self._blocked]
        bound = removal_bound(self._cluster, free, self._prices)
        if self._packing:
            bound = packed_removal_bound(self._cluster, free, self._prices, bound)
        # No set of nodes is worth more.
        dearest = sorted(map(self._price, free), reverse=True)
        if self._most is not None and self._most < bound.nodes:
            price = min(bound.price, sum(dearest[: self._most]))
            bound = replace(bound, nodes=self._most, price=price, resource="")
        enough = bound.price
        order, left_out = self._in_order(free), dict[str, Obstacle]()
        found, passes = self._search(order, min(bound.nodes, len(order)), enough, left_out)
        tries = min(MAX_OTHER_ORDERS, MAX_RETRIED_PODS // max(len(self._cluster.state.pods), 1))
        for other in islice(self._other_orders(found, order), tries):
            if self._is_enough(found, enough):
                break
            kept = dict[str, Obstacle]()
            # A better set may have fewer but more expensive nodes, whose pods move to nodes that would be cordoned.
            window = 1 if self._prices else len(found.removed) + 1
            better, replays = self._search(other, window, enough, kept)
            passes += replays
            if self._value(better) > self._value(found):
                found, left_out = better, kept
        return self._answer(found, left_out, bound, passes)

    def _value(self, found: _Pass) -> tuple[float, int]:
        """Return the price of the emptied nodes, and their number."""
        return sum(map(self._price, found.removed)), len(found.removed)

    def _price(self, name: str) -> float:
        return self._prices.get(name, 1.0)

    def _is_enough(self, found: _Pass, enough: float) -> bool:
        """Return whether the emptied nodes have the price `enough`, except for rounding."""
        return self._value(found)[0] >= enough * (1 - 1e-9)

    def _other_orders(self, found: _Pass, order: Sequence[str]) -> Iterator[list[str]]:
        """Yield orders that may empty better nodes than `found`: expensive nodes first, then nodes left out, then random orders."""
        removed = found.removed
        if self._prices:
            order = sorted(order, key=self._price, reverse=True)
            removed = sorted(removed, key=self._price, reverse=True)
            yield list(order)
        rest = [name for name in order if name not in frozenset(removed)]
        for name in rest:
            yield [name, *removed, *(other for other in rest if other != name)]
        draw = RandomStreams(self._cluster.seed).stream("questions.orders")
        while True:
            yield draw.sample(order, len(order))

    def _search(
        self, order: Sequence[str], window: int, enough: float, left_out: dict[str, Obstacle]
    ) -> tuple[_Pass, int]:
        """Drain nodes in an order, and replay the drain until it empties all of its nodes. Then retry the nodes left out.

        Returns the last drain and the number of replays; adds to `left_out`.
        """
        first = self._pass(order, window)
        left_out.update(first.left_out)
        found, passes = self._replay_until_stable(first, left_out)
        for _ in range(MAX_RETRIES):
            if self._is_enough(found, enough) or len(found.moves) > MAX_RETRIED_MOVES:
                break
            # Nodes whose pods found no room while many nodes were cordoned may find some once these are gone.
            chosen = frozenset(found.removed)
            more = self._pass([*found.removed, *(name for name in order if name not in chosen)], len(chosen))
            left_out.update(more.left_out)
            better, replays = self._replay_until_stable(more, left_out)
            passes += 1 + replays
            if self._value(better) <= self._value(found):
                break
            found = better
        return found, passes

    def _replay_until_stable(self, found: _Pass, left_out: dict[str, Obstacle]) -> tuple[_Pass, int]:
        """Replay a drain, with all its nodes cordoned from the beginning, until it empties all of them.

        Returns the last drain and the number of replays; adds to `left_out`.
        """
        for passes in range(1, MAX_PASSES + 1):
            order = found.removed
            if passes > PATIENT_PASSES:
                order = order[: len(order) - min(len(found.left_out), len(order) - 1)]
            again = self._pass(order, len(order))
            left_out.update(again.left_out)
            if again.removed == order:
                return again, passes
            found = again
        return _Pass([], [], left_out), MAX_PASSES

    def _in_order(self, names: Sequence[str]) -> list[str]:
        """Return nodes by the load to move relative to their price, smallest first; if equal, the most expensive first."""
        state = self._cluster.state
        load = moving_share(state)

        def key(name: str) -> tuple[float, float, str]:
            price = max(self._price(name), 1e-9)
            return float(load[state.nodes.row_of[name]]) / price, -price, name

        return sorted(names, key=key)

    def _pass(self, order: Sequence[str], window: int) -> _Pass:
        """Cordon the first `window` nodes of an order, then drain all nodes one by one; cordon each other node before its drain."""
        found, misses = _Pass([], [], {}), 0
        with self._cluster.trial(preempts=False) as trial:
            nodes = {name: _node(trial.state, name) for name in order}
            for name in order[:window]:
                trial.put(_cordoned(nodes[name]))
            for place, name in enumerate(order):
                if misses >= MAX_MISSES or (self._most is not None and len(found.removed) >= self._most):
                    break
                if place >= window:
                    trial.put(_cordoned(nodes[name]))
                obstacle, moves = drain(trial, name, self._cluster)
                if obstacle is None:
                    trial.remove_node(name)
                    found.removed.append(name)
                    misses = 0
                    found.moves += [
                        MovedPod(order=len(found.removed), pod=pod, from_node=name, to_node=node) for pod, node in moves
                    ]
                else:
                    trial.put(nodes[name])
                    found.left_out[name] = obstacle
                    misses += place >= window
        return found

    def _answer(self, found: _Pass, left_out: dict[str, Obstacle], bound: RemovalBound, passes: int) -> RemovalAnswer:
        state = self._cluster.state
        moving: dict[str, int] = {}
        for move in found.moves:
            moving[move.from_node] = moving.get(move.from_node, 0) + 1
        rows = []
        for number, name in enumerate(found.removed, 1):
            group = group_of(_node(state, name).metadata.labels)
            ends = len(_pods_on(state, name)) - moving.get(name, 0)
            rows.append(
                RemovedNode(
                    order=number,
                    node=name,
                    zone=group.zone,
                    pool=group.pool,
                    pods=moving.get(name, 0),
                    ends=ends,
                    price=self._price(name),
                )
            )
        gone = frozenset(found.removed)
        kept = [KeptNode(node=n, pod=o.pod, reason=o.reason, is_rule=True) for n, o in self._blocked.items()]
        kept += [
            KeptNode(node=n, pod=o.pod, reason=o.reason, is_rule=False) for n, o in left_out.items() if n not in gone
        ]
        return RemovalAnswer(
            nodes=len(state.nodes),
            candidates=len(self._names),
            most=self._most,
            removed=Rows(rows, RemovedNode),
            moves=Rows(found.moves, MovedPod),
            kept=Rows(kept, KeptNode),
            price=sum(row.price for row in rows),
            has_prices=bool(self._prices),
            bound=bound,
            passes=passes,
            assumptions=self._assumptions(),
        )

    def _assumptions(self) -> list[str]:
        found = [
            "all removed nodes are cordoned first, then drained and deleted in this order; moved pods preempt no other pods",
            "the drain waits until each moved pod is ready, so a disruption budget need only allow one disruption at a time",
            "pods of DaemonSets and mirror pods end with their node",
        ]
        if self._options.force:
            found.append("pods without a controller come back as copies, which you have to create yourself")
        if self._cluster.waiting:
            count = len(self._cluster.waiting)
            found.append(f"{format_count(count, 'pending pod')} {is_or_are(count)} ignored")
        if self._prices:
            found += unpriced_note([name for name in self._names if name not in self._prices], "node")
        else:
            found.append("all nodes cost the same")
        return found


def drain(trial: Trial, name: str, cluster: QuestionCluster) -> tuple[Obstacle | None, list[tuple[str, str]]]:
    """Evict the pods of a cordoned node and schedule their replacements. If one finds no node, restore all of them.

    Returns:
        The obstacle, or None; and the moved pods, each with its new node.
    """
    pods = [pod for pod in _pods_on(trial.state, name) if is_recreated_elsewhere(pod)]
    # By priority, like the queue; within a priority the largest pods first, because they are the hardest to place.
    infos = trial.state.pods
    pods.sort(key=lambda pod: (-(pod.spec.priority or 0), -infos[pod.key].footprint.largest, pod.key))
    before: list[tuple[KubernetesObject, KubernetesObject | None]] = []
    moves: list[tuple[str, str]] = []
    for pod in pods:
        trial.remove_pod(pod.key)
    for pod in pods:
        items = replacement(pod, cluster)
        before += [(item, trial.state.catalog.get(type(item), item.key)) for item in items[:-1]]
        node = trial.place(items)
        if not node:
            obstacle = Obstacle(pod.key, trial.messages.get(pod.key, "it waits at Permit"))
            for key in (*(key for key, _ in moves), pod.key):
                trial.remove_pod(key)
            for item, old in before:
                trial.handle(item, old)
            for original in pods:
                trial.put(original)
            return obstacle, []
        moves.append((pod.key, node))
    return None, moves


def moving_share(state: ClusterState) -> np.ndarray:
    """Return float64[rows]: the largest fraction of a node's cpu, memory or pods that belongs to pods that can move."""
    count = state.nodes.count
    taken = np.zeros((len(state.usage), count), dtype=np.int64)
    for info in state.pods.values():
        if is_recreated_elsewhere(info.pod):
            vector = info.footprint.vector
            taken[: len(vector), info.row] += vector
    offered = np.maximum(state.nodes.allocatable[:2, :count], 1)
    shares = np.maximum.reduce(taken[FIRST_RESOURCE : FIRST_RESOURCE + 2] / offered)
    found: np.ndarray = np.maximum(shares, taken[POD_COUNT] / np.maximum(state.nodes.allowed_pods[:count], 1))
    return found


def _pods_on(state: ClusterState, name: str) -> list[Pod]:
    return [info.pod for info in state.pods_on[state.nodes.row_of[name]].values()]


def _node(state: ClusterState, name: str) -> Node:
    node = state.nodes.nodes[state.nodes.row_of[name]]
    assert node is not None
    return node


def _cordoned(node: Node) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=True))


def cordoned(nodes: Iterable[Node]) -> list[Node]:
    """Return cordoned copies of nodes."""
    return [_cordoned(node) for node in nodes]
