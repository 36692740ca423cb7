"""Which nodes to add so that all waiting pods are placed: a cheap set of given shapes, and a lower bound on its price.

Nodes are added one by one, always of the shape whose new node takes the most pods for its price. Then nodes are
removed again, or replaced by cheaper ones, as long as all pods still find nodes. Each step runs the scheduler, so that
affinity, spreading, taints, volumes and the pods of DaemonSets count. Pods of equal priority may be scheduled in any
order, and tightly packed nodes have room for all pods in some orders only, so a set has to hold in several orders. The
answer is the result of scheduling everything on the final set in the first of them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from bayplan.analysis.rows import Rows
from bayplan.answers.bounds import addition_bound, packed_addition_bound
from bayplan.answers.copies import replacement, templates_of
from bayplan.answers.daemon_pods import daemon_models
from bayplan.answers.dependent_pods import DependentPods
from bayplan.answers.node_groups import ZONE
from bayplan.answers.node_sets import Outcome, cheaper_sets
from bayplan.answers.node_shapes import NodeShape, place_labels, unknown_zones
from bayplan.answers.pod_orders import order_note, possible_orders
from bayplan.answers.prices import unpriced_note
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.base.errors import InputError
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.pod_info import FIRST_RESOURCE

MAX_NODES = 5_000
"""Maximum number of nodes to add."""

MAX_ROUNDS = 20
"""Maximum number of rounds that add nodes because some pods no longer fit when everything is scheduled from the beginning."""

MAX_TRIES = 300
"""Maximum number of sets to try when improving an answer."""

MAX_TRIED_PODS = 20_000
"""Maximum number of pods to schedule when improving an answer: a few seconds."""

BY_AGE = 0
"""The number of the order by priority and age; see `possible_orders`."""

MAX_IMPROVED = 60
"""Maximum number of nodes of an answer to improve; each attempt to improve it schedules all waiting pods again."""


class AddedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node to add: its name in the answer, shape, zone and price, and the number of waiting pods placed on it."""

    node: str
    shape: str
    zone: str
    price: float
    pods: int


class PlacedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A waiting pod and its node once the nodes are added. If no shape helps, `node` is "" and `reason` says why."""

    pod: str
    node: str
    reason: str


class AdditionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes to add.

    Attributes:
        waiting: the number of pods to place.
        placed_without: the number of these pods that fit on the current nodes.
        nodes, pods: see the types of their rows.
        by_shape: the number of nodes by shape.
        price: the price of all added nodes.
        bound: a lower bound on the price of any set of these shapes.
        bound_method: the method that determined the bound.
        still_waiting: the number of pods that no shape helps.
        assumptions: the assumptions behind the answer, in sentences.
    """

    waiting: int
    placed_without: int
    nodes: Rows[AddedNode]
    pods: Rows[PlacedPod]
    by_shape: dict[str, int]
    price: float
    bound: float
    bound_method: str
    still_waiting: int
    assumptions: Sequence[str]


METHOD = "relaxation: only amounts count, pods and nodes may be split, and idle amounts of all nodes are used"


def nodes_to_add(
    cluster: QuestionCluster,
    shapes: Sequence[NodeShape],
    *,
    copies: Mapping[str, int] | None = None,
    preempts: bool = False,
    packing: bool = False,
) -> AdditionAnswer:
    """Return a cheap set of nodes with which all waiting pods are placed.

    Args:
        cluster: the current cluster.
        shapes: the available shapes; a shape without a zone is available in every zone of the cluster.
        copies: the number of further copies to place, by workload.
        preempts: whether waiting pods may evict pods on the existing nodes.
        packing: whether to find a tighter bound with OR-tools, if the model is not too large. Ignored if pods may be
            evicted.

    Raises:
        InputError: there is no shape, or a workload does not exist or occurs twice.
        MissingExtra: OR-tools is needed and not installed.
    """
    if not shapes:
        raise InputError("shapes", got="none", wanted="a shape", hint="--shape cpu=8,memory=32Gi,price=0.4")
    return _Addition(cluster, _in_zones(cluster, shapes), copies or {}, preempts, packing).run()


def _in_zones(cluster: QuestionCluster, shapes: Sequence[NodeShape]) -> list[NodeShape]:
    nodes = cluster.all(Node)
    zones = sorted({node.metadata.labels[ZONE] for node in nodes if ZONE in node.metadata.labels})
    found = []
    for shape in shapes:
        if shape.zone or not zones:
            found.append(shape)
            continue
        metadata = shape.template.metadata
        for zone in zones:
            labels = {**place_labels(zone, nodes), **metadata.labels}
            template = replace(shape.template, metadata=replace(metadata, labels=labels))
            found.append(replace(shape, name=f"{shape.name}/{zone}", template=template))
    return found


class _Addition:
    def __init__(
        self,
        cluster: QuestionCluster,
        shapes: Sequence[NodeShape],
        copies: Mapping[str, int],
        preempts: bool,
        packing: bool,
    ) -> None:
        self._cluster = cluster
        self._packing = packing and not preempts
        self._shapes = shapes
        self._preempts = preempts
        self._daemons = daemon_models(cluster.state)
        waiting = [pod for pod in cluster.waiting.values() if not pod.spec.scheduling_gates]
        waiting.sort(key=lambda pod: pod.metadata.creation_timestamp or "")
        self._items = [replacement(pod, cluster) for pod in waiting]
        for template, count in zip(templates_of(copies, cluster), copies.values(), strict=True):
            self._items += [template.next() for _ in range(count)]
        self._gated = len(cluster.waiting) - len(waiting)
        # Pods that differ only in name share a number; pods with individual claims don't.
        numbers: dict[bytes, int] = {}
        self._alike = [numbers.setdefault(_equality_key(items), len(numbers)) for items in self._items]
        self._place_of = {items[-1].key: number for number, items in enumerate(self._items)}
        assert len(self._place_of) == len(self._items)
        self._pods = [pod for items in self._items if isinstance(pod := items[-1], Pod)]
        self._orders, self._by_size = possible_orders(self._pods, self._alike, cluster.state, cluster.seed)
        self._dependents = DependentPods(dict(zip(self._alike, self._pods, strict=True)))
        self._is_zonal = any(_looks_at_zones(items) for items in self._items)
        self._messages: dict[str, str] = {}

    def run(self) -> AdditionAnswer:
        """Add nodes until no pod waits or no shape helps, with all shapes and with each shape alone; improve the best outcome."""
        families = list(dict.fromkeys(map(_family, self._shapes)))
        # All shapes first: this finds the pods that no shape helps, and among equal outcomes the first one counts.
        outcomes = [self._add_until_placed(self._shapes)]
        if len(families) > 1:
            outcomes += [
                self._add_until_placed([s for s in self._shapes if _family(s) == family]) for family in families
            ]
        best = min(outcomes, key=lambda found: (len(found.left), found.price))
        robust = self._add_until_placed(self._shapes, best.shapes, orders=len(self._orders))
        if len(robust.left) <= len(best.left):
            best = robust
        if len(best.left_by_order) < len(self._orders):
            best, _ = self._in_orders(best.shapes, [None] * len(self._orders))
        if len(best.shapes) <= MAX_IMPROVED:
            best = self._improve(best)
        return self._answer(best)

    def _add_until_placed(
        self, shapes: Sequence[NodeShape], begun: Sequence[NodeShape] = (), *, orders: int = 1
    ) -> Outcome:
        """Add nodes of some shapes until all pods that fit any shape are placed in the first orders.

        Return the outcome of scheduling all pods in the first order. `begun`: the nodes added so far.
        """
        chosen, unplaceable = self._grow(begun, shapes, self._by_size)
        limit = self._kinds(unplaceable)
        for _ in range(MAX_ROUNDS):
            # If all nodes exist from the beginning, pods may choose other nodes and leave less room for later pods.
            outcome, failing = self._in_orders(chosen, [limit] * orders)
            if failing is None:
                return outcome
            chosen, unplaceable = self._grow(chosen, shapes, failing)
            limit |= self._kinds(unplaceable)
        return self._schedule(chosen, BY_AGE)

    def _in_orders(
        self, chosen: Sequence[NodeShape], limits: Sequence[Counter[int] | None]
    ) -> tuple[Outcome, int | None]:
        """Schedule everything in each order until more pods stay without a node than its limit allows.

        Return the outcome of the first order, and the order that exceeds its limit, or None.

        Args:
            chosen: the added nodes.
            limits: by order, the number of pods of each kind that may stay without a node; None for no limit.
        """
        first = self._schedule(chosen, BY_AGE)
        left = list[Counter[int]]()
        for order, limit in enumerate(limits):
            found = self._schedule(chosen, order) if order != BY_AGE else first
            left.append(self._kinds(found.left))
            if limit is not None and not left[-1] <= limit:
                return replace(first, left_by_order=left), order
        return replace(first, left_by_order=left), None

    def _kinds(self, keys: Iterable[str]) -> Counter[int]:
        """Return the number of pods of each kind. Which of identical pods get a node depends on the order."""
        return Counter(self._alike[self._place_of[key]] for key in keys)

    # Adding.

    def _grow(
        self, begun: Sequence[NodeShape], shapes: Sequence[NodeShape], order: int
    ) -> tuple[list[NodeShape], frozenset[str]]:
        """Return the shapes of the added nodes, in order, and the pods that no shape helps.

        Other shapes are not evaluated while another node of the same shape is as valuable as the previous one.

        Args:
            begun: the nodes added so far.
            shapes: the shapes to add.
            order: the order in which the pods are scheduled.
        """
        chosen = list(begun)
        with self._cluster.trial(preempts=self._preempts, seed=self._cluster.seed + order) as trial:
            for number, each in enumerate(chosen, 1):
                trial.add_all(each.objects(f"added-{number}", self._daemons))
            waiting = self._place(trial, self._orders[order])
            shape: NodeShape | None = None
            value = 0.0
            while waiting and len(chosen) < MAX_NODES:
                if shape is None:
                    shape, value = self._best_shape(trial, waiting, chosen, shapes)
                    if shape is None:
                        break
                before, added = waiting, shape.objects(f"added-{len(chosen) + 1}", self._daemons)
                trial.add_all(added)
                waiting = self._place(trial, waiting)
                if len(waiting) == len(before):
                    # This further node of the previous shape takes no pod.
                    trial.remove_all(added)
                    shape = None
                    continue
                chosen.append(shape)
                worth = self._taken(trial, before, waiting) / max(shape.price, 1e-9)
                shape = self._next_of_family(shape, chosen) if worth >= value * (1 - 1e-9) else None
        return chosen, frozenset(waiting)

    def _best_shape(
        self, trial: Trial, waiting: Sequence[str], chosen: Sequence[NodeShape], shapes: Sequence[NodeShape]
    ) -> tuple[NodeShape | None, float]:
        """Return the shape with the highest value, and the value; among equal values, the shape with the fewest nodes so far."""
        counts = Counter(shape.name for shape in chosen)
        best: tuple[float, int] = (0.0, 0)
        found: NodeShape | None = None
        tried = set[tuple[str, bytes]]()
        for shape in shapes:
            if not self._is_zonal and _family(shape) in tried:
                continue
            tried.add(_family(shape))
            if shape.most is None or counts[shape.name] < shape.most:
                rank = (self._node_score(trial, waiting, shape, f"added-{len(chosen) + 1}"), -counts[shape.name])
                if rank[0] > 0 and (found is None or rank > best):
                    best, found = rank, shape
        return found, best[0]

    def _next_of_family(self, shape: NodeShape, chosen: Sequence[NodeShape]) -> NodeShape | None:
        """Return the shape of the same family (equal except for its zone) with the fewest nodes; None if all are exhausted."""
        counts = Counter(each.name for each in chosen)
        family = [
            each
            for each in self._shapes
            if _family(each) == _family(shape) and (each.most is None or counts[each.name] < each.most)
        ]
        return min(family, key=lambda each: counts[each.name], default=None)

    def _node_score(self, trial: Trial, waiting: Sequence[str], shape: NodeShape, name: str) -> float:
        """Return the value of one more node of a shape: the size of the waiting pods that fit on it, divided by its price.

        Undoes its changes.
        """
        with trial.undone():
            trial.add_all(shape.objects(name, self._daemons))
            left = self._place(trial, waiting)
            return self._taken(trial, waiting, left) / max(shape.price, 1e-9)

    def _taken(self, trial: Trial, before: Sequence[str], after: Sequence[str]) -> float:
        """Return the total size of the pods that were placed: those in `before` and not in `after`."""
        left = frozenset(after)
        return sum(self._size(trial, key) for key in before if key not in left)

    def _size(self, trial: Trial, key: str) -> float:
        """Return the size of a pod: its largest request relative to the largest node's allocatable amount."""
        vector = trial.state.pods[key].footprint.vector
        return float(np.max(vector[FIRST_RESOURCE:] / self._scale(trial, len(vector) - FIRST_RESOURCE))) + 1e-6

    def _scale(self, trial: Trial, resources: int) -> np.ndarray:
        largest = trial.state.nodes.allocatable[:resources].max(axis=1)
        found: np.ndarray = np.maximum(largest, 1).astype(np.float64)
        return found

    def _place(self, trial: Trial, keys: Sequence[str], *, is_final: bool = False) -> list[str]:
        """Schedule pods one by one, and return those without a node.

        Skip pods that are identical to one without a node. When the placement of a pod may help such pods, retry them: at
        the end, or if `is_final`, at once, as kube-scheduler does.
        """
        left, failed, needing = dict[str, None](), set[int](), set[int]()
        ready = deque(keys)
        while ready:
            key = ready.popleft()
            place, kind = self._place_of[key], self._alike[self._place_of[key]]
            if trial.node_of(key):
                continue
            if kind in failed:
                left[key] = None
            elif trial.place(self._items[place]):
                left.pop(key, None)
                if helped := needing.intersection(self._dependents.helped_by(kind)):
                    needing -= helped
                    failed -= helped
                    retried = [other for other in left if self._alike[self._place_of[other]] in helped]
                    if is_final:
                        ready.extendleft(reversed(retried))
                    else:
                        ready += retried
            else:
                left[key] = None
                failed.add(kind)
                if trial.needs_others(key):
                    needing.add(kind)
                self._give_up(trial, key)
        return [*left]

    def _give_up(self, trial: Trial, key: str) -> None:
        """Remove a pod without a node, and store the message of its last attempt."""
        if key in trial.scheduler.pods:
            self._messages[key] = trial.waiting_message(trial.scheduler.pods[key])
            trial.remove_pod(key)

    # The outcome, and better ones.

    def _schedule(self, chosen: Sequence[NodeShape], order: int) -> Outcome:
        """Schedule everything in an order, with all nodes present from the beginning."""
        self._messages = {}
        with self._cluster.trial(preempts=self._preempts, seed=self._cluster.seed + order) as trial:
            names = []
            for number, shape in enumerate(chosen, 1):
                names.append(f"added-{number}")
                trial.add_all(shape.objects(names[-1], self._daemons))
            left = self._place(trial, self._orders[order], is_final=True)
            nodes = {key: trial.node_of(key) for key in self._orders[order]}
        return Outcome(list(chosen), names, nodes, frozenset(left), dict(self._messages))

    def _improve(self, best: Outcome) -> Outcome:
        """Remove nodes, and replace them by cheaper ones, as long as no more pods wait in any order."""
        tries_left = min(MAX_TRIES, MAX_TRIED_PODS // max(len(self._items), 1))
        while tries_left > 0:
            better: Outcome | None = None
            for shapes in cheaper_sets(best, self._shapes):
                found, failing = self._in_orders(shapes, best.left_by_order)
                tries_left -= len(found.left_by_order)
                if failing is None:
                    better = found
                if better is not None or tries_left <= 0:
                    break
            if better is None:
                break
            best = better
        return best

    def _answer(self, best: Outcome) -> AdditionAnswer:
        pods = Counter(node for node in best.nodes.values() if node)
        nodes = [
            AddedNode(
                node=name,
                shape=shape.name,
                zone=shape.zone,
                price=shape.price,
                pods=pods[name],
            )
            for name, shape in zip(best.names, best.shapes, strict=True)
        ]
        added = frozenset(best.names)
        rows = [
            PlacedPod(
                pod=key,
                node=node,
                reason=best.messages.get(key, "same reason as an identical pod") if not node else "",
            )
            for key, node in best.nodes.items()
        ]
        placed = [pod for items in self._items if isinstance(pod := items[-1], Pod) and pod.key not in best.left]
        bound, method = addition_bound(self._cluster, placed, self._shapes, preempts=self._preempts), ""
        if self._packing:
            bound, method = packed_addition_bound(self._cluster, placed, self._shapes, best.price, bound)
        assert bound <= best.price * (1 + 1e-6) + 1e-9
        return AdditionAnswer(
            waiting=len(self._items),
            placed_without=sum(bool(node) and node not in added for node in best.nodes.values()),
            nodes=Rows(nodes, AddedNode),
            pods=Rows(rows, PlacedPod),
            by_shape=dict(Counter(node.shape for node in nodes).most_common()),
            price=sum(node.price for node in nodes),
            bound=min(bound, best.price),
            bound_method=method or METHOD,
            still_waiting=len(best.left),
            assumptions=self._assumptions(best),
        )

    def _assumptions(self, best: Outcome) -> list[str]:
        found = ["shapes without a zone are available in every zone of the cluster"]
        found += unknown_zones(self._shapes, self._cluster.all(Node))
        if missing := self._missing_resources():
            found.append(
                f"no shape offers {' or '.join(missing)}, which some pods ask for; a shape has only the resources that it names"
            )
        if all(shape.price == self._shapes[0].price for shape in self._shapes):
            found.append("all shapes cost the same, so fewer nodes are cheaper")
        else:
            found += unpriced_note([shape.name for shape in self._shapes if not shape.has_price], "shape")
        if self._daemons:
            found.append(f"every new node runs the pods of {format_count(len(self._daemons), 'DaemonSet')} if they fit")
        found += self._cluster.terminating_note()
        if self._gated:
            found.append(
                f"{format_count(self._gated, 'pod')} with scheduling gates {is_or_are(self._gated)} not counted"
            )
        found.append(
            "pending pods may evict pods of lower priority" if self._preempts else "pending pods evict no other pods"
        )
        if best.shapes and len(self._pods) > 1:
            found.append(self._order_note(best))
        return found

    def _order_note(self, best: Outcome) -> str:
        """Return in which orders of the pods the answer holds; see `order_note`."""
        return order_note([left.total() - len(best.left) for left in best.left_by_order])

    def _missing_resources(self) -> list[str]:
        """Return the resources that a pod requests and no shape offers, sorted by name."""
        names = list(self._cluster.state.nodes.resources)
        offered = {name for shape in self._shapes for name in shape.template.status.allocatable}
        asked = set[str]()
        for items in dict(zip(self._alike, self._items, strict=True)).values():
            pod = items[-1]
            assert isinstance(pod, Pod)
            vector = self._cluster.state.footprint(pod).vector[FIRST_RESOURCE:]
            asked.update(names[number] for number in np.flatnonzero(vector).tolist())
        return sorted(asked - offered)


def _equality_key(items: Sequence[KubernetesObject]) -> bytes:
    """Return a key that is equal for pods that the scheduler treats alike."""
    pod = items[-1]
    assert isinstance(pod, Pod)
    return msgspec.msgpack.encode((pod.metadata.namespace, pod.metadata.labels, pod.spec))


def _looks_at_zones(items: Sequence[KubernetesObject]) -> bool:
    """Return whether a pod's scheduling may depend on the zone of a node."""
    pod = items[-1]
    assert isinstance(pod, Pod)
    spec = pod.spec
    return bool(spec.affinity is not None or spec.node_selector or spec.topology_spread_constraints or spec.volumes)


def _family(shape: NodeShape) -> tuple[str, bytes]:
    """Return the name without the zone at its end, and the encoded amounts. Shapes of a pool and type share it across zones."""
    return shape.name.removesuffix(shape.zone), msgspec.msgpack.encode(shape.template.status.allocatable)
