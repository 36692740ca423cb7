"""CheckNodeUnschedulable, and the predicates on node conditions, which taints replace (TaintNodesByCondition)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bayplan.classic.plugins.failure_reasons import (
    NODE_NETWORK_UNAVAILABLE,
    NODE_NOT_READY,
    NODE_UNDER_DISK_PRESSURE,
    NODE_UNDER_MEMORY_PRESSURE,
    NODE_UNDER_PID_PRESSURE,
    NODE_UNSCHEDULABLE,
    verdict_of,
)
from bayplan.framework.plugin import FilterPlugin, Params, Reads
from bayplan.framework.rule import FilterRule
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import nano_value
from bayplan.objects.resource_names import CPU, MEMORY
from bayplan.objects.selectors import tolerates
from bayplan.state.cluster_state import ClusterState

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
CORDONED = verdict_of(1, NODE_UNSCHEDULABLE)
PRESSED = verdict_of(1, NODE_UNDER_MEMORY_PRESSURE)

NOT_READY_SHIFT, NETWORK_SHIFT, MAX_REPEATS = 1, 5, 15
"""Upstream repeats the reason for each repetition of a condition, so a verdict contains counts of four bits each."""


class FlagSpec(msgspec.Struct, frozen=True):
    """Whether the predicate checks nodes for this pod."""

    key: bool


class CheckNodeUnschedulable(FilterPlugin[FlagSpec]):
    """Rejects cordoned nodes, unless the pod tolerates the corresponding taint."""

    name = "CheckNodeUnschedulable"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> FlagSpec:
        """Return whether to check nodes: not for pods that tolerate the taint of cordoned nodes."""
        found = any(tolerates(item, UNSCHEDULABLE_TAINT, comparison_operators=False) for item in pod.spec.tolerations)
        return FlagSpec(not found)

    def filter_rule(self, spec: FlagSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that rejects cordoned nodes."""
        return Cordoned(spec.key, cluster)

    def reasons(self, spec: FlagSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (NODE_UNSCHEDULABLE,)


class ConditionPredicate(FilterPlugin[FlagSpec]):
    """Base of the predicates on conditions. No log shows their changes, so every node is evaluated in every cycle."""

    reads = Reads.EVERYTHING
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> FlagSpec:
        """Return a spec with which nodes are checked for every pod."""
        return FlagSpec(True)

    def filter_rule(self, spec: FlagSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks a node's conditions."""
        return NodeVerdict(self.verdict if spec.key else None, cluster)

    def verdict(self, node: Node) -> int:
        """Return the verdict on a node."""
        raise TypeError(f"{type(self).__name__} lacks verdict()")


class CheckNodeCondition(ConditionPredicate):
    """Rejects nodes that are not ready, have no network, or are cordoned."""

    name = "CheckNodeCondition"

    def verdict(self, node: Node) -> int:
        """Return the number of failed conditions, packed into a verdict."""
        not_ready = unavailable = 0
        for condition in node.status.conditions:
            if condition.type == "Ready" and condition.status != "True":
                not_ready += 1
            elif condition.type == "NetworkUnavailable" and condition.status != "False":
                unavailable += 1
        packed = min(not_ready, MAX_REPEATS) << NOT_READY_SHIFT | min(unavailable, MAX_REPEATS) << NETWORK_SHIFT
        packed |= int(node.spec.unschedulable)
        return verdict_of(packed, NODE_NOT_READY) if packed else 0

    def reasons(self, spec: FlagSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reason of each failed condition, repeated for each repetition of the condition."""
        return (
            *(NODE_NOT_READY,) * (verdict >> NOT_READY_SHIFT & MAX_REPEATS),
            *(NODE_NETWORK_UNAVAILABLE,) * (verdict >> NETWORK_SHIFT & MAX_REPEATS),
            *(NODE_UNSCHEDULABLE,) * (verdict & 1),
        )


class PressurePredicate(ConditionPredicate):
    """Base of the predicates on pressure conditions; of several conditions of a type, the last counts."""

    condition = ""
    reason = ""

    def verdict(self, node: Node) -> int:
        """Return `PRESSED` if the node is under pressure, else 0."""
        states = [item.status for item in node.status.conditions if item.type == self.condition]
        return PRESSED if states and states[-1] == "True" else 0

    def reasons(self, spec: FlagSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (self.reason,)


class CheckNodeMemoryPressure(PressurePredicate):
    """Rejects nodes with memory pressure for pods of the class BestEffort."""

    name = "CheckNodeMemoryPressure"
    condition = "MemoryPressure"
    reason = NODE_UNDER_MEMORY_PRESSURE

    def compile(self, pod: Pod, cluster: ClusterState) -> FlagSpec:
        """Return whether to check nodes: only for pods of the class BestEffort."""
        return FlagSpec(is_best_effort(pod))


class CheckNodeDiskPressure(PressurePredicate):
    """Rejects nodes with disk pressure."""

    name = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    reason = NODE_UNDER_DISK_PRESSURE


class CheckNodePIDPressure(PressurePredicate):
    """Rejects nodes with PID pressure."""

    name = "CheckNodePIDPressure"
    condition = "PIDPressure"
    reason = NODE_UNDER_PID_PRESSURE


class Cordoned(FilterRule):
    """Returns `CORDONED` for cordoned nodes, if the pod needs the check."""

    def __init__(self, checks: bool, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._checks = checks

    def filter(self, row: int) -> int:
        """Return `CORDONED` if the node is cordoned and the pod needs the check."""
        return CORDONED if self._checks and self.columns.unschedulable[row] else 0


class NodeVerdict(FilterRule):
    """Returns the verdict of a function of the node; with None, every node passes."""

    def __init__(self, verdict: Callable[[Node], int] | None, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._verdict = verdict
        self._nodes = cluster.nodes

    def filter(self, row: int) -> int:
        """Call the function with the node."""
        node = self._nodes.nodes[row] if self._verdict is not None else None
        return 0 if node is None or self._verdict is None else self._verdict(node)


def is_best_effort(pod: Pod) -> bool:
    """Return whether no container has a request or limit above 0 for CPU or memory."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for amounts in (container.resources.requests, container.resources.limits):
            if any(nano_value(amounts[name]) > 0 for name in (CPU, MEMORY) if name in amounts):
                return False
    return True
