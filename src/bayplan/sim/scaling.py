"""The lifetimes of nodes, the actions of an autoscaler, and the costs of nodes: rows for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from bayplan.base.durations import HOUR_NS
from bayplan.objects.node import Node
from bayplan.objects.node_prices import price_of

GROUP_LABEL = "bayplan.io/node-group"
"""The node label that contains the name of the node's group."""


class NodeLifetime(msgspec.Struct, kw_only=True):
    """When a node existed.

    Attributes:
        name: the name of the node.
        zone: its label `topology.kubernetes.io/zone`, or `""`.
        node: its last version.
        added_ns: when it was added.
        removed_ns: when it was removed; None while it exists.
    """

    name: str
    zone: str
    node: Node
    added_ns: int
    removed_ns: int | None = None


class ScalingKind(StrEnum):
    """Actions of an autoscaler: it orders nodes, removes nodes, or gives up draining a node."""

    SCALE_UP = "scale-up"
    SCALE_DOWN = "scale-down"
    GIVEN_UP = "scale-down given up"


class ScalingEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One action of the autoscaler.

    Attributes:
        time_ns: the time in nanoseconds since 1970.
        kind: the action.
        group: the node group.
        nodes: the names of the nodes.
        pods: the pods for which nodes are added, or that must move.
        reason: the reason, in words.
    """

    time_ns: int
    kind: ScalingKind
    group: str
    nodes: Sequence[str]
    pods: Sequence[str] = ()
    reason: str = ""


class GroupCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a group's nodes over a run.

    Attributes:
        group: the node group.
        price: the price of a node per hour.
        nodes: the number of nodes that it had during the run.
        peak: the maximum number of nodes at the same time.
        node_hours: the sum of their lifetimes in hours.
        cost: the node hours times the price.
    """

    group: str
    price: float
    nodes: int
    peak: int
    node_hours: float
    cost: float


class ScalingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The actions of an autoscaler in a run, in order, and the costs of its groups."""

    events: Sequence[ScalingEvent]
    costs: Sequence[GroupCost]

    @property
    def cost(self) -> float:
        """Return the cost of all groups."""
        return sum(each.cost for each in self.costs)


def group_costs(lifetimes: Sequence[NodeLifetime], prices: Mapping[str, float], end_ns: int) -> list[GroupCost]:
    """Return the costs of groups, in the order of `prices`. Nodes cost from when they are added until they are removed.

    Args:
        lifetimes: the lifetimes of all nodes of the run.
        prices: the price of a node per hour, by group.
        end_ns: the end of the run.
    """
    found = []
    for group, price in prices.items():
        spans = [
            (each.added_ns, end_ns if each.removed_ns is None else each.removed_ns)
            for each in lifetimes
            if each.node.metadata.labels.get(GROUP_LABEL) == group
        ]
        hours = sum(removed_ns - added_ns for added_ns, removed_ns in spans) / HOUR_NS
        found.append(
            GroupCost(
                group=group,
                price=price,
                nodes=len(spans),
                peak=_peak(spans),
                node_hours=hours,
                cost=hours * price,
            )
        )
    return found


def lifetime_price(lifetime: NodeLifetime, costs: Sequence[GroupCost]) -> float | None:
    """Return the hourly price of a node from its annotation, or else from its group; None if neither has one.

    Args:
        lifetime: the lifetime of the node.
        costs: the costs of the autoscaler's groups.
    """
    price = price_of(lifetime.node)
    if price is not None:
        return price
    group = lifetime.node.metadata.labels.get(GROUP_LABEL)
    return next((each.price for each in costs if each.group == group and each.price), None)


def _peak(spans: Sequence[tuple[int, int]]) -> int:
    """Return the maximum number of spans that overlap; spans do not overlap if one ends when the other begins."""
    steps = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    count = most = 0
    for _, step in steps:
        count += step
        most = max(most, count)
    return most
