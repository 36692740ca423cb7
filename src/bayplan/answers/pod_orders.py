"""Orders in which kube-scheduler may schedule waiting pods, and in which of them an answer holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.base.counted_nouns import format_count
from bayplan.base.random_streams import RandomStreams
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

MAX_ORDERS, MIN_ORDERS, MAX_ORDERED_PODS = 8, 2, 10_000
"""Maximum and minimum number of orders in which a set has to hold, and the number of pods to schedule for them in between."""


class PodOrders(NamedTuple):
    """Orders of pods.

    Attributes:
        orders: the keys of the pods in each order. The first order is by priority and age.
        by_size: the number of the order by priority and size, because the largest pods are the hardest to place.
    """

    orders: list[list[str]]
    by_size: int


def possible_orders(pods: Sequence[Pod], kinds: Sequence[int], state: ClusterState, seed: int) -> PodOrders:
    """Return different orders in which kube-scheduler may schedule pods: by priority and age, as in its queue, and others.

    The others are also by priority. Within a priority, the second has the largest pods first, unless the first has, too;
    the rest are random. There are fewer if there are many pods, or if only few orders are possible. Orders that differ
    only in identical pods count as one.

    Args:
        pods: the pods by age.
        kinds: a number for each pod, equal for identical pods.
        state: the cluster.
        seed: the seed of the random orders.
    """
    count = min(MAX_ORDERS, max(MIN_ORDERS, MAX_ORDERED_PODS // max(len(pods), 1)))
    draw = RandomStreams(seed).stream("questions.orders")
    kind_of = dict(zip((pod.key for pod in pods), kinds, strict=True))
    found: dict[tuple[int, ...], list[str]] = {}

    def add(ordered: Sequence[Pod]) -> int:
        order = [pod.key for pod in sorted(ordered, key=lambda pod: -(pod.spec.priority or 0))]
        by_kind = tuple(kind_of[key] for key in order)
        found.setdefault(by_kind, order)
        return [*found].index(by_kind)

    add(pods)
    by_size = add(sorted(pods, key=lambda pod: -state.footprint(pod).largest))
    for _ in range(2 * count):
        if len(found) < count:
            add(draw.sample(pods, len(pods)))
    return PodOrders([*found.values()], by_size)


def order_note(more: Sequence[int]) -> str:
    """Return in which orders an answer holds.

    Args:
        more: by order, the number of pods that stay pending in addition to those of the first order.
    """
    start = "all new nodes are ready before the pods are scheduled, by priority and then by age"
    if len(more) == 1:
        return start
    others = f"{format_count(len(more) - 1, 'other order')} of pods with equal priority"
    if max(more) <= 0:
        return f"{start}; no more pods stay pending in {others}"
    pods = f"{format_count(max(more), 'more pod')} {'stays' if max(more) == 1 else 'stay'} pending"
    return f"{start}; in {sum(count > 0 for count in more)} of {others}, up to {pods}"
