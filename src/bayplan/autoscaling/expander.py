"""Expanders: the choice among node groups that would help waiting pods. Names as in cluster-autoscaler.

``price`` is simpler than upstream's: the price of the new nodes per pod that they accept, without preferred node sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bayplan.autoscaling.configuration import Expander, NodeGroup
from bayplan.objects.requests import Amounts


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """The result of growing a node group.

    Attributes:
        group: the group that grows.
        nodes: the number of new nodes.
        pods: the keys of the waiting pods that fit on them.
        offered, requested: the CPU and memory of all new nodes, and of these pods.
    """

    group: NodeGroup
    nodes: int
    pods: Sequence[str]
    offered: Amounts
    requested: Amounts


def best_option(options: Sequence[Option], expander: Expander, draw: Callable[[], float]) -> Option:
    """Return the option that an expander prefers; one of equally good ones is chosen at random.

    Args:
        options: at least one option.
        expander: the name of the expander.
        draw: the function that returns a random number from 0 to 1.
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
    """Return the sum of the free shares of CPU and memory on the new nodes."""
    found = 0.0
    for resource in ("cpu", "memory"):
        offered = option.offered.get(resource, 0)
        if offered:
            found += (offered - option.requested.get(resource, 0)) / offered
    return found
