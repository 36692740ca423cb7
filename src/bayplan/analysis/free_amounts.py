"""Free amounts on nodes just before a decision, computed from the timelines of the pods."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from bayplan.engine.decision import Outcome
from bayplan.objects.requests import Amounts, node_amounts
from bayplan.sim.result import PodTimeline
from bayplan.state.resource_table import PODS

if TYPE_CHECKING:
    from bayplan.analysis.run_source import RunSource


def free_amounts(source: RunSource, number: int, nodes: Iterable[str]) -> dict[str, Amounts]:
    """Return the amounts that were allocatable and not requested just before a decision, by node and resource.

    Nodes deleted since then are left out, as their capacity is unknown. ``pods`` is the number of pods that could still
    be added. Pods held by a Permit plugin at that time are not counted.

    Args:
        source: the run.
        number: the number of the decision.
        nodes: the names of the nodes.
    """
    free = {
        name: node_amounts(node.status.allocatable) for name in nodes if (node := source.nodes.get(name)) is not None
    }
    for name, requested in source.requested_before(number, free).items():
        amounts = free[name]
        for resource, amount in requested.items():
            amounts[resource] = amounts.get(resource, 0) - amount
    return free


def requested_by_time_lines(source: RunSource, number: int, nodes: Collection[str]) -> dict[str, Amounts]:
    """Return the amounts requested just before a decision, by node and resource; ``pods`` is the number of pods."""
    found: dict[str, Amounts] = {}
    for pod in pods_on_nodes(source, number):
        if pod.node not in nodes:
            continue
        amounts = found.setdefault(pod.node, {})
        amounts[PODS] = amounts.get(PODS, 0) + 1
        for resource, amount in source.requests_of(pod).items():
            amounts[resource] = amounts.get(resource, 0) + amount
    return found


def pods_on_nodes(source: RunSource, number: int) -> Iterator[PodTimeline]:
    """Yield the pods that were on nodes just before a decision."""
    time_ns = source.records[number].time_ns
    at_once = bound_at_once(source, number)
    for pod in source.pods:
        if was_on_node(pod, time_ns, at_once):
            yield pod


def bound_at_once(source: RunSource, number: int) -> frozenset[str]:
    """Return the keys of the pods that were scheduled before a decision, but at the same virtual time."""
    records, keys = source.records, []
    time_ns = records[number].time_ns
    for earlier in range(number - 1, -1, -1):
        try:
            record = records[earlier]
        except LookupError:  # A server drops old records.
            break
        if record.time_ns != time_ns:
            break
        if record.outcome is Outcome.SCHEDULED:
            keys.append(record.pod)
    return frozenset(keys)


def was_on_node(pod: PodTimeline, time_ns: int, at_once: frozenset[str]) -> bool:
    """Return whether a pod occupied its node just before a decision at this time. `at_once`: see `bound_at_once`."""
    if pod.bound_ns is None or pod.bound_ns > time_ns:
        return False
    if pod.ended_ns is not None and pod.ended_ns <= time_ns:
        return False
    return pod.bound_ns < time_ns or pod.imported or pod.key in at_once
