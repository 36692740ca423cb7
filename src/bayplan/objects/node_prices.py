"""The price of a node: an annotation that Bayplan reads."""

from __future__ import annotations

from bayplan.objects.node import Node

PRICE = "bayplan.io/price"
"""Annotation of a node with its price per hour, a number."""


def price_of(node: Node) -> float | None:
    """Return the price of a node per hour; None if it has no price, or an invalid one."""
    try:
        return float(node.metadata.annotations.get(PRICE, ""))
    except ValueError:
        return None
