"""The order in which nodes are visited: one node of each zone in turn, as in upstream's nodeTree.

A sample of nodes taken in this order contains nodes of all zones.
"""

from __future__ import annotations

import numpy as np

from bayplan.objects.node import Node
from bayplan.state.arrays import Index

ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
"""The labels of a node's zone and region. If a node has both labels of a pair, the first, older one counts."""


def zone_key(node: Node) -> str:
    """Return the identifier of a node's zone and region; "" if it has neither."""
    labels = node.metadata.labels
    zone, region = (
        next((labels[name] for name in names if name in labels), "") for names in (ZONE_LABELS, REGION_LABELS)
    )
    return f"{region}:\x00:{zone}" if region or zone else ""


class NodeTree:
    """Nodes by zone: zones in the order of their first node, a zone's nodes in the order of their addition."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}
        self._order: Index | None = None

    def add(self, node: Node) -> None:
        """Add a node at the end of its zone."""
        self._zones.setdefault(zone_key(node), {})[node.metadata.name] = None
        self._order = None

    def remove(self, node: Node) -> None:
        """Remove a node, and with the last node its zone."""
        zone = zone_key(node)
        names = self._zones[zone]
        del names[node.metadata.name]
        if not names:
            del self._zones[zone]
        self._order = None

    def update(self, old: Node, new: Node) -> None:
        """Move a node whose zone has changed to the end of its new zone."""
        if old.metadata.labels is not new.metadata.labels and zone_key(old) != zone_key(new):
            self.remove(old)
            self.add(new)

    def order(self, row_of: dict[str, int]) -> Index:
        """Return the rows in visiting order: the first node of each zone, then the second of each zone, and so on."""
        if self._order is None:
            zones = [np.array([row_of[name] for name in names], dtype=np.intp) for names in self._zones.values()]
            # If there are no nodes, there is nothing to concatenate.
            zones = zones or [np.zeros(0, dtype=np.intp)]
            rounds = np.concatenate([np.arange(len(rows)) for rows in zones])
            # A stable sort keeps the order of the zones in each round.
            self._order = np.concatenate(zones)[np.argsort(rounds, kind="stable")]
        return self._order

    def __reduce__(self) -> tuple[object, ...]:
        return NodeTree, (), (None, {"_zones": self._zones})

    def copy(self) -> NodeTree:
        """Return an independent copy."""
        other = NodeTree()
        other._zones = {zone: dict(names) for zone, names in self._zones.items()}
        return other
