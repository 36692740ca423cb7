"""A naive PodTopologySpread that applies the documented rules to each node, on the typed objects.

https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bayplan.objects.affinity import TopologySpreadConstraint
from bayplan.objects.pod import Pod
from tests.oracle.node_rules import passes_affinity, passes_taints
from tests.oracle.selectors import matches_labels
from tests.oracle.world import World

HOSTNAME = "kubernetes.io/hostname"
LABEL, UNEVEN = "label", "uneven"


def of_kind(pod: Pod, kind: str) -> list[TopologySpreadConstraint]:
    """Return a pod's constraints with this ``whenUnsatisfiable``, ``DoNotSchedule`` or ``ScheduleAnyway``."""
    return [item for item in pod.spec.topology_spread_constraints if item.when_unsatisfiable == kind]


def spreads(constraint: TopologySpreadConstraint, pod: Pod, labels: Mapping[str, str]) -> bool:
    """Return whether a constraint of a pod selects pods with these labels."""
    mine = pod.metadata.labels
    keys = [key for key in constraint.match_label_keys if key in mine]
    same = all(labels.get(key) == mine[key] for key in keys)
    return matches_labels(constraint.label_selector, labels) and same


def count_on(constraint: TopologySpreadConstraint, pod: Pod, node: str, world: World) -> int:
    """Return the number of pods on a node that a constraint counts.

    Terminating pods do not count, and none count if the selector is empty and there are no matched label keys.
    """
    selector = constraint.label_selector
    keys = [key for key in constraint.match_label_keys if key in pod.metadata.labels]
    if selector is not None and not selector.match_labels and not selector.match_expressions and not keys:
        return 0
    return sum(
        place == node
        and other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and spreads(constraint, pod, other.metadata.labels)
        for other, place in world.pods.values()
    )


def is_included(constraint: TopologySpreadConstraint, pod: Pod, node: str, world: World) -> bool:
    """Return whether the inclusion policies of a constraint let a node count."""
    item = world.nodes[node]
    if constraint.node_affinity_policy in (None, "Honor") and not passes_affinity(pod, item):
        return False
    return constraint.node_taints_policy != "Honor" or passes_taints(pod, item)


def has_all(keys: Sequence[str], node: str, world: World) -> bool:
    """Return whether a node has labels with all topology keys."""
    return all(world.value(node, key) is not None for key in keys)


def objection(pod: Pod, node: str, world: World) -> str | None:
    """Return why the first violated hard constraint forbids a node, a missing label or the skew; or None."""
    hard = of_kind(pod, "DoNotSchedule")
    for constraint in hard:
        value = world.value(node, constraint.topology_key)
        if value is None:
            return LABEL
        counting = [
            name
            for name in world.nodes
            if has_all([item.topology_key for item in hard], name, world) and is_included(constraint, pod, name, world)
        ]
        domains = {world.value(name, constraint.topology_key): 0 for name in counting}
        for name in counting:
            domains[world.value(name, constraint.topology_key)] += count_on(constraint, pod, name, world)
        smallest = min(domains.values(), default=2**31 - 1)
        if len(domains) < (constraint.min_domains or 1):
            smallest = 0
        itself = int(spreads(constraint, pod, pod.metadata.labels))
        if domains.get(value, 0) + itself - smallest > constraint.max_skew:
            return UNEVEN
    return None


def scores(
    pod: Pod, feasible: Sequence[str], world: World, soft: Sequence[TopologySpreadConstraint], all_keys: bool = True
) -> dict[str, int | None]:
    """Return the raw score of each feasible node; None for nodes that are ignored because they lack a topology key.

    `all_keys` is false for default constraints, which apply to pods without constraints: then no node is ignored.
    """
    keys = [constraint.topology_key for constraint in soft]
    scored = [name for name in feasible if not all_keys or has_all(keys, name, world)]
    found: dict[str, int | None] = dict.fromkeys(feasible)
    for name in scored:
        total = 0.0
        for constraint in soft:
            key = constraint.topology_key
            value = world.value(name, key)
            if value is None:
                continue
            if key == HOSTNAME:
                size, count = len(scored), count_on(constraint, pod, name, world)
            else:
                size = len({world.value(other, key) for other in scored})
                count = sum(
                    count_on(constraint, pod, other, world)
                    for other in world.nodes
                    if world.value(other, key) == value
                    and (not all_keys or has_all(keys, other, world))
                    and is_included(constraint, pod, other, world)
                )
            total += count * math.log(size + 2) + (constraint.max_skew - 1)
        found[name] = math.floor(total + 0.5)
    return found


def normalized(raw: Mapping[str, int | None]) -> dict[str, int]:
    """Return the scores scaled to 100 for the lowest raw score and less for higher ones; 0 for ignored nodes."""
    known = [score for score in raw.values() if score is not None]
    low, high = min(known, default=0), max(known, default=0)
    if high == 0:
        return {name: 0 if score is None else 100 for name, score in raw.items()}
    return {name: 0 if score is None else 100 * (high + low - score) // high for name, score in raw.items()}
