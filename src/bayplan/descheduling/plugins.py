"""The descheduler's plugins, which choose the pods to evict.

Source: https://github.com/kubernetes-sigs/descheduler/blob/master/README.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from bayplan.base.durations import SECOND_NS
from bayplan.descheduling.policy import (
    EvictorArgs,
    LowNodeUtilizationArgs,
    PodLifeTimeArgs,
    RemoveDuplicatesArgs,
    TopologySpreadArgs,
)
from bayplan.descheduling.view import ClusterView, by_priority, selects
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, TopologySpreadConstraint
from bayplan.objects.requests import node_amounts
from bayplan.objects.selectors import compile_label_selector
from bayplan.state.resource_table import PODS

Run: TypeAlias = Callable[[ClusterView, EvictorArgs, Any], None]
BASIC = ("cpu", "memory", PODS)


def pod_life_time(view: ClusterView, evictor: EvictorArgs, args: PodLifeTimeArgs) -> None:
    """Evict pods older than a given number of seconds, the oldest first."""
    pods = [*(pod for pods in view.pods.values() for pod in pods), *view.waiting]
    old = [
        pod
        for pod in pods
        if view.age_ns(pod) > args.max_pod_life_time_seconds * SECOND_NS
        and (not args.states or pod.status.phase in args.states)
        and args.namespaces.has(pod.metadata.namespace)
        and selects(args.label_selector, pod)
    ]
    for pod in sorted(old, key=lambda each: (-view.age_ns(each), each.key)):
        if view.is_evictable(pod, evictor):
            view.evict(pod, "PodLifeTime")


def remove_duplicates(view: ClusterView, evictor: EvictorArgs, args: RemoveDuplicatesArgs) -> None:
    """Evict pods of the same owner, with the same images, beyond an equal share for each node that accepts them."""
    groups: dict[tuple[object, ...], dict[str, list[Pod]]] = {}
    for node in view.nodes:
        for pod in view.remaining(node.metadata.name):
            owner = pod.metadata.controller()
            if (
                owner is None
                or owner.kind in args.exclude_owner_kinds
                or not args.namespaces.has(pod.metadata.namespace)
            ):
                continue
            images = tuple(sorted(container.image for container in pod.spec.containers))
            key = (pod.metadata.namespace, owner.kind, owner.name, images)
            groups.setdefault(key, {}).setdefault(node.metadata.name, []).append(pod)
    for by_node in groups.values():
        first = next(iter(by_node.values()))[0]
        targets = [node for node in view.nodes if view.accepts(node, first, room=False)]
        if len(targets) < 2:
            continue
        share = math.ceil(sum(map(len, by_node.values())) / len(targets))
        for pods in by_node.values():
            for pod in pods[share:]:
                if view.is_evictable(pod, evictor):
                    view.evict(pod, "RemoveDuplicates")


def remove_pods_violating_topology_spread_constraint(
    view: ClusterView, evictor: EvictorArgs, args: TopologySpreadArgs
) -> None:
    """Evict pods from the fullest domains of constraints until their maximum skew holds, if they fit elsewhere."""
    found: dict[tuple[str, str], tuple[str, TopologySpreadConstraint]] = {}
    for pods in view.pods.values():
        for pod in pods:
            namespace = pod.metadata.namespace
            if not args.namespaces.has(namespace) or not selects(args.label_selector, pod):
                continue
            for constraint in pod.spec.topology_spread_constraints:
                if constraint.when_unsatisfiable in args.constraints:
                    found.setdefault((namespace, repr(constraint)), (namespace, constraint))
    for namespace, constraint in found.values():
        _balance(view, evictor, args, namespace, constraint)


def _balance(
    view: ClusterView,
    evictor: EvictorArgs,
    args: TopologySpreadArgs,
    namespace: str,
    constraint: TopologySpreadConstraint,
) -> None:
    key, selector = constraint.topology_key, compile_label_selector(constraint.label_selector)
    domains: dict[str, list[Pod]] = {}
    for node in view.nodes:
        if key in node.metadata.labels:
            domains.setdefault(node.metadata.labels[key], []).extend(
                pod
                for pod in view.remaining(node.metadata.name)
                if pod.metadata.namespace == namespace and selector.matches(pod.metadata.labels)
            )
    if len(domains) < 2:
        return
    sizes = {name: len(pods) for name, pods in domains.items()}
    mean = sum(sizes.values()) / len(sizes)
    order = sorted(sizes, key=lambda name: (sizes[name], name))
    low, high = 0, len(order) - 1
    while low < high:
        small, large = order[low], order[high]
        skew = sizes[large] - sizes[small]
        if sizes[large] < mean or skew <= constraint.max_skew:
            # The pair has nothing to move: continue with the next one.
            low, high = (low, high - 1) if sizes[large] < mean else (low + 1, high)
            continue
        moves = min(
            math.ceil(sizes[large] - mean), math.ceil(mean - sizes[small]), math.ceil((skew - constraint.max_skew) / 2)
        )
        if moves <= 0:
            low += 1
            continue
        sizes[small] += moves
        sizes[large] -= moves
        for pod in by_priority(domains[large]):
            if not moves:
                break
            if view.is_evictable(pod, evictor) and (
                not args.topology_balance_node_fit or _fits_elsewhere(view, pod, key)
            ):
                moves -= view.evict(pod, "RemovePodsViolatingTopologySpreadConstraint")
        low += 1


def _fits_elsewhere(view: ClusterView, pod: Pod, key: str) -> bool:
    own = next((node.metadata.labels.get(key) for node in view.nodes if node.metadata.name == pod.spec.node_name), None)
    return any(view.accepts(node, pod) for node in view.nodes if node.metadata.labels.get(key) not in (None, own))


def low_node_utilization(view: ClusterView, evictor: EvictorArgs, args: LowNodeUtilizationArgs) -> None:
    """Evict pods from overutilized nodes while underutilized nodes have room for them below the target thresholds."""
    resources = tuple(dict.fromkeys((*BASIC, *args.thresholds, *args.target_thresholds)))
    shares = {node.metadata.name: _shares(view, node, resources) for node in view.nodes}
    low, high = _thresholds(args, resources, shares)
    under = [
        node
        for node in view.nodes
        if not node.spec.unschedulable and all(shares[node.metadata.name][name] <= low[name] for name in resources)
    ]
    over = [node for node in view.nodes if any(shares[node.metadata.name][name] > high[name] for name in resources)]
    if not under or len(under) <= args.number_of_nodes or len(under) == len(view.nodes) or not over:
        return
    room = dict.fromkeys(resources, 0.0)
    for node in under:
        offered, used = node_amounts(node.status.allocatable), view.used(node)
        for name in resources:
            room[name] += offered.get(name, 0) * high[name] / 100 - used.get(name, 0)
    over.sort(key=lambda node: (-sum(shares[node.metadata.name].values()), node.metadata.name))
    for node in over:
        for pod in by_priority(view.remaining(node.metadata.name)):
            requests, now = view.requests(pod), _shares(view, node, resources)
            if not any(now[name] > high[name] for name in resources):
                break
            if any(room[name] < requests.get(name, 0) for name in resources):
                continue
            allowed = args.evictable_namespaces.has(pod.metadata.namespace) and view.is_evictable(pod, evictor)
            if allowed and any(view.accepts(each, pod) for each in under) and view.evict(pod, "LowNodeUtilization"):
                for name in resources:
                    room[name] -= requests.get(name, 0)


def _shares(view: ClusterView, node: Node, resources: tuple[str, ...]) -> dict[str, float]:
    """Return the requested share of each resource of a node, in percent."""
    offered, used = node_amounts(node.status.allocatable), view.used(node)
    return {name: 100 * used.get(name, 0) / offered[name] if offered.get(name) else 0.0 for name in resources}


def _thresholds(
    args: LowNodeUtilizationArgs, resources: tuple[str, ...], shares: Mapping[str, Mapping[str, float]]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the percentages by resource up to which a node is underutilized, and above which it is overutilized."""
    if not args.use_deviation_thresholds:
        low = {name: args.thresholds.get(name, 100.0) for name in resources}
        return low, {name: args.target_thresholds.get(name, 100.0) for name in resources}
    means = {name: sum(each[name] for each in shares.values()) / max(len(shares), 1) for name in resources}
    low = {
        name: max(means[name] - args.thresholds[name], 0.0) if name in args.thresholds else 100.0 for name in resources
    }
    high = {
        name: min(means[name] + args.target_thresholds[name], 100.0) if name in args.target_thresholds else 100.0
        for name in resources
    }
    return low, high


RUNS: Mapping[str, Run] = {
    "PodLifeTime": pod_life_time,
    "RemoveDuplicates": remove_duplicates,
    "RemovePodsViolatingTopologySpreadConstraint": remove_pods_violating_topology_spread_constraint,
    "LowNodeUtilization": low_node_utilization,
}
"""The functions of the plugins, by plugin name."""
