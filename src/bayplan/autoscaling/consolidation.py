"""Consolidation by Karpenter's rules: removes nodes whose pods fit on other nodes, possibly with one cheaper new node.

It removes all empty nodes together; else as many nodes as possible at once, without a replacement or with one new node; else a
single node.
Simplified: a node group stands for a NodePool with one instance type. One command runs at a time, and takes effect at
once (Karpenter checks it again after 15 seconds). There is no drift, no expiry and no spot capacity, and budgets have
no schedules.

Source: https://karpenter.sh/docs/concepts/disruption/ and pkg/controllers/disruption of kubernetes-sigs/karpenter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from bayplan.answers.daemon_pods import daemon_models, with_daemons
from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.drain_rules import Budgets, Disruptions
from bayplan.answers.node_removal import drain
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.autoscaling.configuration import AutoscalerConfiguration, Disruption, NodeGroup, Reason, node_of
from bayplan.cluster.owned_pods import is_daemon_pod, pods_by_node
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.sim.operations import Apply, Delete, Evict, Operation
from bayplan.sim.result import PodTimeline
from bayplan.sim.scaling import GROUP_LABEL, NodeLifetime, ScalingEvent, ScalingKind

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
TAINT = Taint(key="karpenter.sh/disrupted", effect="NoSchedule")

MAX_PARALLEL = 100
"""Maximum number of nodes that one command removes."""

MAX_COST = 10.0
"""Maximum disruption cost of a pod, and its negative the minimum. Without priority and deletion cost, it is 1."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A node that may be disrupted, with its group, the pods that would have to move, and its disruption cost."""

    node: Node
    group: NodeGroup
    moving: Sequence[Pod]
    cost: float

    @property
    def name(self) -> str:
        """Return the name of the node."""
        return self.node.metadata.name


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes to remove, and the group of the node that replaces them; None for no replacement."""

    candidates: Sequence[Candidate]
    replacement: NodeGroup | None = None


class Consolidation:
    """Finds nodes to remove, and removes them.

    Args:
        configuration: the configuration, with the rules of consolidation.
        events: receives an event for each removal.
        pods: returns the timelines of all pods.
        nodes: returns the lifetimes of all nodes.

    Attributes:
        next_ns: when to check again even if nothing changes; None for never.
    """

    def __init__(
        self,
        configuration: AutoscalerConfiguration,
        events: list[ScalingEvent],
        pods: Callable[[], Sequence[PodTimeline]],
        nodes: Callable[[], Sequence[NodeLifetime]],
    ) -> None:
        assert configuration.disruption is not None
        self._rules: Disruption = configuration.disruption
        self._configuration = configuration
        self._groups = {group.name: group for group in configuration.groups}
        self._events = events
        self._pods = pods
        self._nodes = nodes
        self._in_progress: dict[str, str] = {}
        self.next_ns: int | None = None

    # --- choosing nodes -----------------------------------------------------------------------------------------------

    def plan(self, cluster: QuestionCluster, now_ns: int, sizes: Mapping[str, int]) -> Command | None:
        """Return the next command; None if there is nothing to do, or if the current command is unfinished.

        Args:
            cluster: the current cluster.
            now_ns: the current time.
            sizes: the number of nodes of each group, by name.
        """
        if self._in_progress:
            return None
        candidates = self._candidates(cluster, now_ns)
        empty = self._allowed([each for each in candidates if not each.moving], sizes, "Empty")
        if empty:
            return Command(candidates=empty)
        if self._rules.policy == "WhenEmpty":
            return None
        # If empty nodes are left here, budgets do not allow removing them.
        in_use = self._allowed([each for each in candidates if each.moving], sizes, "Underutilized")[:MAX_PARALLEL]
        return self._most(cluster, in_use, sizes) or self._single(cluster, candidates, sizes)

    def _candidates(self, cluster: QuestionCluster, now_ns: int) -> list[Candidate]:
        """Return the nodes that may be disrupted now, by increasing disruption cost."""
        self.next_ns = None
        budgets = Budgets(cluster.all(PodDisruptionBudget))
        wanted = {pod.status.nominated_node_name for pod in cluster.waiting.values()}
        on_nodes, last_ns = pods_by_node(cluster.all(Pod)), self._last_events()
        found = []
        for node in cluster.all(Node):
            name = node.metadata.name
            group = self._groups.get(node.metadata.labels.get(GROUP_LABEL, ""))
            if group is None or name in wanted or node.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
                continue
            pods = on_nodes.get(name, [])
            moving = [pod for pod in pods if is_recreated_elsewhere(pod)]
            if any(_blocks_disruption(pod) for pod in pods) or any(budgets.eviction_problem(pod) for pod in moving):
                continue
            ready_ns = last_ns.get(name, now_ns) + self._rules.consolidate_after_ns
            if ready_ns > now_ns:
                self.next_ns = ready_ns if self.next_ns is None else min(self.next_ns, ready_ns)
                continue
            cost = sum(map(disruption_cost, pods))
            found.append(Candidate(node=node, group=group, moving=moving, cost=cost))
        return sorted(found, key=lambda each: (each.cost, each.name))

    def _last_events(self) -> dict[str, int]:
        """Return, by node, when a pod was last added or removed, or else when the node was added."""
        found = {node.name: node.added_ns for node in self._nodes() if node.removed_ns is None}
        for pod in self._pods():
            is_daemon = pod.pod is not None and is_daemon_pod(pod.pod)
            if pod.node in found and pod.bound_ns is not None and not is_daemon:
                found[pod.node] = max(found[pod.node], pod.bound_ns, pod.ended_ns or 0)
        return found

    def _allowed(self, candidates: Sequence[Candidate], sizes: Mapping[str, int], reason: Reason) -> list[Candidate]:
        """Return the candidates that the budgets and minimum sizes of their groups allow."""
        left = {
            name: min(self._rules.allowed(sizes.get(name, 0), reason), sizes.get(name, 0) - group.min_size)
            for name, group in self._groups.items()
        }
        found = []
        for each in candidates:
            if left[each.group.name] > 0:
                left[each.group.name] -= 1
                found.append(each)
        return found

    def _most(
        self, cluster: QuestionCluster, candidates: Sequence[Candidate], sizes: Mapping[str, int]
    ) -> Command | None:
        """Return a command for as many of the first candidates as possible, at least two; None if there is none.

        Finds the number by binary search, as Karpenter does.
        """
        found = None
        least, most = 1, len(candidates) - 1
        while least <= most:
            middle = (least + most) // 2
            command = self._command(cluster, candidates[: middle + 1], sizes)
            if command is None:
                most = middle - 1
            else:
                found, least = command, middle + 1
        return found

    def _single(
        self, cluster: QuestionCluster, candidates: Sequence[Candidate], sizes: Mapping[str, int]
    ) -> Command | None:
        """Return the command for the first node with pods that can be removed alone; None if there is none."""
        for each in candidates:
            if each.moving and self._allowed([each], sizes, "Underutilized"):
                command = self._command(cluster, [each], sizes)
                if command is not None:
                    return command
        return None

    def _command(
        self, cluster: QuestionCluster, candidates: Sequence[Candidate], sizes: Mapping[str, int]
    ) -> Command | None:
        """Return the command that removes all given nodes.

        None if their pods fit neither on the other nodes nor on the other nodes and one cheaper new node.
        """
        if self._fits(cluster, candidates, None):
            return Command(candidates=candidates)
        price = sum(each.group.price for each in candidates)
        own = {each.group.name for each in candidates}
        cheapest_first = sorted(self._groups.values(), key=lambda each: (each.price, each.name not in own, each.name))
        for group in cheapest_first:
            if group.price < price and self._fits(cluster, candidates, group):
                if group.name in own:
                    return (
                        None  # Replacing several nodes with one of their own kind is the same as deleting the others.
                    )
                if self._may_grow(group, sizes):
                    return Command(candidates=candidates, replacement=group)
        return None

    def _may_grow(self, group: NodeGroup, sizes: Mapping[str, int]) -> bool:
        """Return whether a group may get one more node.

        The nodes to replace are counted, because they stay until the new node is ready.
        """
        most = self._configuration.options.max_nodes_total
        return sizes.get(group.name, 0) < group.max_size and (not most or sum(sizes.values()) < most)

    def _fits(self, cluster: QuestionCluster, candidates: Sequence[Candidate], added: NodeGroup | None) -> bool:
        """Return whether the candidates' pods fit on the other nodes, and on one new node of group `added` if given."""
        with cluster.trial(preempts=False) as trial:
            for each in candidates:
                trial.put(replace(each.node, spec=replace(each.node.spec, unschedulable=True)))
            if added is not None:
                trial.add_all(with_daemons(node_of(added, f"trial-{added.name}"), daemon_models(cluster.state)))
            return all(drain(trial, each.name, cluster)[0] is None for each in candidates)

    # --- removing nodes -----------------------------------------------------------------------------------------------

    def begin(self, command: Command, replacement: str, now_ns: int) -> list[tuple[int, Operation]]:
        """Begin a command: return the operations that taint its nodes, so that they get no more pods.

        `replacement` is the name of the new node, or `""`.
        """
        found: list[tuple[int, Operation]] = []
        for each in command.candidates:
            spec = each.node.spec
            found.append((now_ns, Apply(replace(each.node, spec=replace(spec, taints=(*spec.taints, TAINT))))))
            self._in_progress[each.name] = replacement
            reason = (
                f"replaced by {replacement}" if replacement else "its pods fit elsewhere" if each.moving else "empty"
            )
            event = ScalingEvent(
                time_ns=now_ns,
                kind=ScalingKind.SCALE_DOWN,
                group=each.group.name,
                nodes=[each.name],
                pods=[pod.key for pod in each.moving],
                reason=reason,
            )
            self._events.append(event)
        return found

    def continue_command(self, cluster: QuestionCluster, now_ns: int) -> list[tuple[int, Operation]]:
        """Return the operations that continue the command: evict pods, as disruption budgets allow, and delete empty nodes.

        Nodes with a replacement must wait until it is ready.
        """
        found: list[tuple[int, Operation]] = []
        on_nodes = pods_by_node(cluster.all(Pod))
        disruptions = Disruptions(Budgets(cluster.all(PodDisruptionBudget)))
        for name, replacement in list(self._in_progress.items()):
            if cluster.get(Node, name) is None:
                del self._in_progress[name]
            elif replacement and cluster.get(Node, replacement) is None:
                continue
            elif left := [pod for pod in on_nodes.get(name, []) if is_recreated_elsewhere(pod)]:
                found += [(now_ns, Evict(pod.key)) for pod in left if disruptions.try_evict(pod)]
            else:
                found.append((now_ns, Delete(Node, name)))
        return found

    @property
    def is_busy(self) -> bool:
        """Return whether a command is unfinished."""
        return bool(self._in_progress)


def disruption_cost(pod: Pod) -> float:
    """Return the disruption cost of a pod: 1, plus shares of its deletion cost and its priority."""
    cost = 1.0 + (pod.spec.priority or 0) / 2**25
    with suppress(ValueError):
        cost += float(pod.metadata.annotations.get(DELETION_COST, "0")) / 2**27
    return min(max(cost, -MAX_COST), MAX_COST)


def _blocks_disruption(pod: Pod) -> bool:
    return pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true" and pod.metadata.deletion_timestamp is None
