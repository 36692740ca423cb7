"""Expanders: choose one of the node groups that could take waiting pods. Names and rules are cluster-autoscaler's.

Source: https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler/expander (for `price` also
cluster-autoscaler/proposals/pricing.md; the prices of pods are options, by default those of its price model of GCE).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from bayplan.autoscaling.configuration import NodeGroup, Options
from bayplan.objects.requests import Amounts, node_amounts

PREFERRED_CPU_MILLI = ((2, 1_000), (6, 2_000), (20, 4_000), (60, 8_000), (200, 16_000))
"""Pairs of a maximum number of nodes in the cluster, and the CPU of the nodes that the expander `price` then prefers."""

MAX_PREFERRED_CPU_MILLI = 32_000
"""CPU of the nodes that `price` prefers in larger clusters."""

STABILIZATION: Amounts = {"cpu": 500, "memory": 500 * 2**20}
"""Requests whose price is added to both sides of the price ratio, so that tiny pods have less influence."""

SUPPRESSION_NODES = 15.0
"""If many more nodes than this are added, the size of the nodes has little weight."""

GPU_UNFITNESS = 1000.0
"""Unfitness of nodes with GPUs, whatever their size: only pods that need GPUs should get them."""

_GIBIBYTE = 2**30


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of growing a node group.

    Attributes:
        group: the group.
        nodes: the number of new nodes.
        pods: the keys of the waiting pods that fit on them.
        offered, requested: the resources of all new nodes, and the requests of these pods, in the units of the state.
    """

    group: NodeGroup
    nodes: int
    pods: Sequence[str]
    offered: Amounts
    requested: Amounts


def best_option(options: Sequence[Option], given: Options, draw: Callable[[], float], *, cluster_nodes: int) -> Option:
    """Return the option that the expander prefers; of equally good options, a random one.

    Args:
        options: at least one option.
        given: the options of the autoscaler, which name the expander.
        draw: returns a random number from 0 to below 1.
        cluster_nodes: the number of nodes in the cluster.
    """
    scores: dict[str, Callable[[Option], float]] = {
        "random": lambda option: 0.0,
        "most-pods": lambda option: -len(option.pods),
        "least-waste": waste,
        "price": lambda option: price_score(option, given, cluster_nodes),
        "priority": lambda option: -option.group.priority,
    }
    score = scores[given.expander]
    lowest = min(map(score, options))
    best = [option for option in options if score(option) == lowest]
    return best[int(draw() * len(best))]


def waste(option: Option) -> float:
    """Return the sum of the unused shares of CPU and memory on the new nodes."""
    found = 0.0
    for resource in ("cpu", "memory"):
        offered = option.offered.get(resource, 0)
        if offered:
            found += (offered - option.requested.get(resource, 0)) / offered
    return found


def price_score(option: Option, given: Options, cluster_nodes: int) -> float:
    """Return the price score of an option; lower is better.

    The score is the price of the nodes divided by the price of the pods' requests, times the unfitness of the nodes.

    Args:
        option: the option.
        given: the options of the autoscaler, with the prices of CPU, memory and GPUs.
        cluster_nodes: the number of nodes in the cluster.
    """
    stabilization = requests_price(STABILIZATION, given)
    nodes, pods = option.nodes * option.group.price, requests_price(option.requested, given)
    return suppressed_unfitness(option, cluster_nodes) * (nodes + stabilization) / (pods + stabilization)


def requests_price(requested: Mapping[str, int], given: Options) -> float:
    """Return the hourly price of a machine with exactly the requested resources."""
    price = requested.get("cpu", 0) / 1000 * given.cpu_price
    price += requested.get("memory", 0) / _GIBIBYTE * given.memory_price
    return price + sum(amount for name, amount in requested.items() if name.endswith("/gpu")) * given.gpu_price


def suppressed_unfitness(option: Option, cluster_nodes: int) -> float:
    """Return the unfitness of a group's nodes: the ratio of their CPU and the preferred node's, at least 1.

    The unfitness approaches 1 if many nodes are added. For nodes with GPUs, it is `GPU_UNFITNESS`.
    """
    status = option.group.template.status
    amounts = node_amounts(status.capacity or status.allocatable)
    if any(amount for name, amount in amounts.items() if name.endswith("/gpu")):
        return GPU_UNFITNESS
    preferred, offered = preferred_cpu_milli(cluster_nodes), max(amounts.get("cpu", 0), 1)
    unfitness = max(preferred / offered, offered / preferred)
    return (unfitness - 1.0) * (1.0 - math.tanh((option.nodes - 1) / SUPPRESSION_NODES)) + 1.0


def preferred_cpu_milli(cluster_nodes: int) -> int:
    """Return the CPU of the preferred node: it doubles whenever the cluster grows about threefold."""
    return next((cpu for most, cpu in PREFERRED_CPU_MILLI if cluster_nodes <= most), MAX_PREFERRED_CPU_MILLI)
