"""An upper bound on the number of removable nodes, to judge how good an answer is.

The bound considers amounts only: pods may be split and put anywhere. For each resource, the remaining nodes must offer
(allocatable without what DaemonSets and mirror pods take there) as much as the other pods request. The fewest nodes that do are
the largest ones, so the bound of one resource is exact for it; the bound is the smallest over all resources. Rules such as
affinity or spreading can only make the true number smaller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from bayplan.answers.drain_rules import stays_behind
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.state.arrays import Ints
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT


class RemovalBound(msgspec.Struct, frozen=True, kw_only=True):
    """A bound.

    Attributes:
        nodes: maximum number that could be removed.
        price: maximum saving.
        resource: the resource that decides; "" if amounts would allow all candidates to be removed.
        method: how the bound was found, in words.
    """

    nodes: int
    price: float
    resource: str
    method: str


METHOD = "relaxation: amounts only, pods may be split and put on any node"


def removal_bound(cluster: QuestionCluster, candidates: Sequence[str], prices: Mapping[str, float]) -> RemovalBound:
    """Return how many of some nodes could be removed at most.

    Args:
        cluster: the current one.
        candidates: nodes that no rule keeps.
        prices: by node, 1 if there is none.
    """
    state = cluster.state
    count = state.nodes.count
    fixed = np.zeros((len(state.usage), count), dtype=np.int64)
    for info in state.pods.values():
        if stays_behind(info.pod):
            vector = info.footprint.vector
            fixed[: len(vector), info.row] += vector
    alive = state.nodes.alive[:count]
    may_go = np.zeros(count, dtype=np.bool_)
    may_go[[state.nodes.row_of[name] for name in candidates]] = True
    price = np.array([prices.get(name or "", 1.0) for name in state.nodes.names[:count]])
    best, best_price, resource = int(may_go.sum()), float(price[may_go].sum()), ""
    for name, offered, usage, taken in _resources(cluster, fixed):
        rooms = np.maximum(offered - taken, 0)
        # An over-committed node keeps what it has.
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
    return RemovalBound(nodes=best, price=best_price, resource=resource, method=METHOD)


def _resources(cluster: QuestionCluster, fixed: Ints) -> list[tuple[str, Ints, Ints, Ints]]:
    """Return name, offer, usage and fixed usage by row of every resource; pods among them."""
    state = cluster.state
    count = state.nodes.count
    found = [("pods", state.nodes.allowed_pods[:count], state.usage[POD_COUNT, :count], fixed[POD_COUNT])]
    for number, name in enumerate(state.nodes.resources.names):
        row = FIRST_RESOURCE + number
        found.append((name, state.nodes.allocatable[number, :count], state.usage[row, :count], fixed[row]))
    return found


def _price_bound(sizes: Ints, prices: np.ndarray, needed: int) -> float:
    """Return what could be saved at most if nodes of these sizes must offer `needed`: parts of nodes may stay."""
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
