"""Scale-down by cluster-autoscaler's rules: removes nodes with low utilization whose pods fit elsewhere.

Up to ten empty nodes are removed at once. Nodes with pods are removed one by one: a node is tainted, its pods are
evicted as disruption budgets allow, and then it is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.drain_rules import Budgets, Disruptions
from bayplan.answers.node_removal import drain
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.autoscaling.configuration import AutoscalerConfiguration
from bayplan.base.durations import MINUTE_NS
from bayplan.cluster.owned_pods import is_daemon_pod, pods_by_node
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.requests import accounted_requests, node_amounts
from bayplan.sim.operations import Apply, Delete, Evict, Operation
from bayplan.sim.scaling import GROUP_LABEL, ScalingEvent, ScalingKind

SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
TAINT = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule")

MAX_EVICTION_NS = 2 * MINUTE_NS
"""Maximum duration of the evictions from one node (`--max-pod-eviction-time`)."""

_SYSTEM = "kube-system"


class ScaleDown:
    """Finds unneeded nodes and removes them.

    Args:
        configuration: the options and node groups.
        events: receives an event for each removal.

    Attributes:
        next_ns: when to check again even if nothing changes; None for never.
    """

    def __init__(self, configuration: AutoscalerConfiguration, events: list[ScalingEvent]) -> None:
        self._configuration = configuration
        self._events = events
        self._unneeded: dict[str, int] = {}
        self._draining: dict[str, int] = {}
        self._last_deleted_ns: int | None = None
        self.next_ns: int | None = None

    def run(
        self,
        cluster: QuestionCluster,
        now_ns: int,
        sizes: Mapping[str, int],
        last_added_ns: int | None,
        *,
        starting: bool,
    ) -> list[tuple[int, Operation]]:
        """Return the operations of one scan.

        Args:
            cluster: the current cluster.
            now_ns: the current time.
            sizes: the number of nodes of each group, by name.
            last_added_ns: the time of the last scale-up.
            starting: whether nodes are starting.
        """
        self.next_ns = None
        found = self._continue_draining(cluster, now_ns)
        if found or self._draining:
            return found
        moves = self._unneeded_now(cluster, sizes)
        self._unneeded = {name: self._unneeded.get(name, now_ns) for name in moves}
        if not moves or starting:
            return []
        configuration = self._configuration
        allowed_ns = max(
            (last_added_ns + configuration.delay_after_add_ns) if last_added_ns is not None else 0,
            (self._last_deleted_ns + configuration.delay_after_delete_ns) if self._last_deleted_ns is not None else 0,
        )
        due = {name: max(since + configuration.unneeded_ns, allowed_ns) for name, since in self._unneeded.items()}
        ready = [name for name, time_ns in due.items() if time_ns <= now_ns]
        self.next_ns = min((time_ns for time_ns in due.values() if time_ns > now_ns), default=None)
        empty = [name for name in ready if not moves[name]][: configuration.options.max_empty_bulk_delete]
        chosen = self._within_minimum(cluster, sizes, empty or ready[:1])
        return self._remove(cluster, chosen, moves, now_ns)

    # --- choosing nodes -----------------------------------------------------------------------------------------------

    def _unneeded_now(self, cluster: QuestionCluster, sizes: Mapping[str, int]) -> dict[str, list[str]]:
        """Map each node that could be removed, all of them together, to the keys of the pods that would move.

        Nodes that were unneeded in the last scan are tried first, then nodes by increasing utilization.
        """
        minimum = {group.name: group.min_size for group in self._configuration.groups}
        budgets = Budgets(cluster.all(PodDisruptionBudget))
        candidates: list[tuple[bool, float, str]] = []
        pods = pods_by_node(cluster.all(Pod))
        for node in cluster.all(Node):
            name = node.metadata.name
            group = node.metadata.labels.get(GROUP_LABEL, "")
            if (
                sizes.get(group, 0) <= minimum.get(group, 0)
                or node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true"
            ):
                continue
            share = self._utilization(node, pods.get(name, []), cluster)
            moving = [pod for pod in pods.get(name, []) if is_recreated_elsewhere(pod)]
            low = not moving or share < self._configuration.options.scale_down_utilization_threshold
            if low and not any(self._keeps_node(pod, budgets) for pod in moving):
                # Nodes that were unneeded in the last scan come first.
                candidates.append((name not in self._unneeded, share, name))
        found: dict[str, list[str]] = {}
        with cluster.trial(preempts=False) as trial:
            for _, _, name in sorted(candidates):
                node = next(each for each in trial.nodes() if each.metadata.name == name)
                trial.put(replace(node, spec=replace(node.spec, unschedulable=True)))
                obstacle, moves = drain(trial, name, cluster)
                if obstacle is None:
                    found[name] = [key for key, _ in moves]
                else:
                    trial.put(node)
        return found

    def _utilization(self, node: Node, pods: Sequence[Pod], cluster: QuestionCluster) -> float:
        """Return the larger of the requested shares of CPU and memory; for a node with GPUs, the share of its GPUs."""
        offered = node_amounts(node.status.allocatable)
        requested: dict[str, int] = {}
        for pod in pods:
            if self._configuration.options.ignore_daemonsets_utilization and is_daemon_pod(pod):
                continue
            for name, amount in accounted_requests(pod, cluster.state.request_gates).requests.items():
                requested[name] = requested.get(name, 0) + amount
        gpus = [name for name, amount in offered.items() if name.endswith("/gpu") and amount]
        shares = [requested.get(name, 0) / offered[name] for name in gpus or ("cpu", "memory") if offered.get(name)]
        return max(shares, default=0.0)

    def _keeps_node(self, pod: Pod, budgets: Budgets) -> bool:
        """Return whether a pod that would have to move prevents the removal of its node."""
        options, annotation = self._configuration.options, pod.metadata.annotations.get(SAFE_TO_EVICT)
        if annotation == "false":
            return True
        if (pod.spec.priority or 0) < options.expendable_pods_priority_cutoff:
            return False
        if budgets.eviction_problem(pod):
            return True
        if annotation == "true":
            return False
        if pod.metadata.controller() is None:
            return True
        if options.skip_nodes_with_system_pods and pod.metadata.namespace == _SYSTEM and not budgets.selects(pod):
            return True
        local = any(volume.empty_dir is not None or volume.host_path is not None for volume in pod.spec.volumes)
        return local and options.skip_nodes_with_local_storage

    def _within_minimum(self, cluster: QuestionCluster, sizes: Mapping[str, int], names: Sequence[str]) -> list[str]:
        """Return the nodes that can be removed without any group falling below its minimum size."""
        left = dict(sizes)
        minimum = {group.name: group.min_size for group in self._configuration.groups}
        found = []
        for name in names:
            node = cluster.get(Node, name)
            group = node.metadata.labels.get(GROUP_LABEL, "") if node is not None else ""
            if left.get(group, 0) > minimum.get(group, 0):
                left[group] -= 1
                found.append(name)
        return found

    # --- removing nodes -----------------------------------------------------------------------------------------------

    def _remove(
        self, cluster: QuestionCluster, names: Sequence[str], moves: Mapping[str, Sequence[str]], now_ns: int
    ) -> list[tuple[int, Operation]]:
        found: list[tuple[int, Operation]] = []
        for name in names:
            node = cluster.get(Node, name)
            if node is None:
                continue
            self._unneeded.pop(name, None)
            group = node.metadata.labels.get(GROUP_LABEL, "")
            event = ScalingEvent(
                time_ns=now_ns,
                kind=ScalingKind.SCALE_DOWN,
                group=group,
                nodes=[name],
                pods=list(moves[name]),
                reason="its pods fit elsewhere" if moves[name] else "it is empty",
            )
            self._events.append(event)
            if moves[name]:
                self._draining[name] = now_ns
                found.append((now_ns, Apply(replace(node, spec=replace(node.spec, taints=(*node.spec.taints, TAINT))))))
                found += self._evictions(cluster, name, now_ns)
            else:
                found.append((now_ns, Delete(Node, name)))
                self._last_deleted_ns = now_ns
        if self._draining:
            self.next_ns = now_ns + self._configuration.scan_interval_ns
        return found

    def _continue_draining(self, cluster: QuestionCluster, now_ns: int) -> list[tuple[int, Operation]]:
        """Return operations that evict the remaining pods of draining nodes.

        They also delete nodes without such pods, and untaint nodes that could not be drained within `MAX_EVICTION_NS`.
        """
        found: list[tuple[int, Operation]] = []
        for name, since_ns in list(self._draining.items()):
            node = cluster.get(Node, name)
            if node is None:
                del self._draining[name]
            elif not [pod for pod in pods_by_node(cluster.all(Pod)).get(name, []) if is_recreated_elsewhere(pod)]:
                del self._draining[name]
                self._last_deleted_ns = now_ns
                found.append((now_ns, Delete(Node, name)))
            elif now_ns - since_ns >= MAX_EVICTION_NS:
                del self._draining[name]
                taints = tuple(taint for taint in node.spec.taints if taint.key != TAINT.key)
                found.append((now_ns, Apply(replace(node, spec=replace(node.spec, taints=taints)))))
                group = node.metadata.labels.get(GROUP_LABEL, "")
                event = ScalingEvent(
                    time_ns=now_ns,
                    kind=ScalingKind.GIVEN_UP,
                    group=group,
                    nodes=[name],
                    reason="its pods can't be evicted",
                )
                self._events.append(event)
            else:
                found += self._evictions(cluster, name, now_ns)
        if self._draining:
            self.next_ns = now_ns + self._configuration.scan_interval_ns
        return found

    def _evictions(self, cluster: QuestionCluster, name: str, now_ns: int) -> list[tuple[int, Operation]]:
        """Return the evictions from a node that disruption budgets allow now.

        Pods that end with the node (see `is_recreated_elsewhere`) are not evicted.
        """
        disruptions = Disruptions(Budgets(cluster.all(PodDisruptionBudget)))
        pods = [pod for pod in pods_by_node(cluster.all(Pod)).get(name, []) if is_recreated_elsewhere(pod)]
        return [(now_ns, Evict(pod.key)) for pod in pods if disruptions.try_evict(pod)]
