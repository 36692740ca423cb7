"""Expanders: which node group grows if several would help waiting pods. Names as cluster-autoscaler's.

``price`` is simpler than upstream's: the price of the new nodes for each pod that they take, without preferred node sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bayplan.autoscaling.configuration import Expander, NodeGroup
from bayplan.objects.requests import Amounts


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """What growing a group would do.

    Attributes:
        group: that grows. nodes: how many new ones. pods: keys of the waiting pods that they take.
        offered, requested: of cpu and memory, by all new nodes and by these pods.
    """

    group: NodeGroup
    nodes: int
    pods: Sequence[str]
    offered: Amounts
    requested: Amounts


def best_option(options: Sequence[Option], expander: Expander, draw: Callable[[], float]) -> Option:
    """Return the option that an expander prefers; one of equally good ones is drawn.

    Args:
        options: at least one. expander: its name. draw: returns a random number from 0 to 1.
    """
    scores: dict[str, Callable[[Option], float]] = {
        "random": lambda option: 0.0,
        "most-pods": lambda option: -len(option.pods),
        "least-waste": waste,
        "price": lambda option: option.nodes * option.group.price / len(option.pods),
        "priority": lambda option: -option.group.priority,
    }
    score = scores[expander]
    lowest = min(map(score, options))
    best = [option for option in options if score(option) == lowest]
    return best[int(draw() * len(best))]


def waste(option: Option) -> float:
    """Return the sum of the shares of cpu and memory of the new nodes that stay free."""
    found = 0.0
    for resource in ("cpu", "memory"):
        offered = option.offered.get(resource, 0)
        if offered:
            found += (offered - option.requested.get(resource, 0)) / offered
    return found
