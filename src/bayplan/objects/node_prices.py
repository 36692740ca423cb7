"""Node prices: an annotation that Bayplan defines."""

from __future__ import annotations

import math

from bayplan.objects.node import Node

PRICE = "bayplan.io/price"
"""Annotation with the price of a node per hour, a number."""


def price_of(node: Node) -> float | None:
    """Return the price of a node per hour; None if the annotation is missing or not a number of at least 0."""
    try:
        price = float(node.metadata.annotations.get(PRICE, ""))
    except ValueError:
        return None
    return price if 0 <= price < math.inf else None
