"""The cluster as the descheduler's plugins see it: nodes, their pods, which pods may be evicted, and the evictions so far."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.answers.displaced_pods import MIRROR
from bayplan.answers.drain_rules import Budgets, Disruptions
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.cluster.owned_pods import is_active, is_daemon_pod
from bayplan.descheduling.policy import EvictorArgs, Policy
from bayplan.objects.admission import SYSTEM_PRIORITY_CLASSES
from bayplan.objects.meta import LabelSelector
from bayplan.objects.node import Node, is_ready
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget, PriorityClass
from bayplan.objects.requests import Amounts, accounted_requests, node_amounts
from bayplan.objects.selectors import compile_label_selector, compile_required_node_affinity, tolerates
from bayplan.state.resource_table import PODS

EVICT_ANNOTATION = "descheduler.alpha.kubernetes.io/evict"
SYSTEM_CRITICAL = 2_000_000_000
"""The lowest priority of system-critical pods."""

_REJECTING = ("NoSchedule", "NoExecute")


class ClusterView:
    """The cluster during one run of the descheduler.

    Args:
        cluster: the current cluster.
        policy: the policy, with the limits on evictions.
        now_ns: the current time.

    Attributes:
        nodes: the ready nodes that the policy selects, in order.
        pods: the active pods (neither finished nor terminating), by node.
        waiting: the pods without a node.
        evicted: the pods to evict, in order, each with the plugin that chose it.
    """

    def __init__(self, cluster: QuestionCluster, policy: Policy, now_ns: int) -> None:
        self.now_ns = now_ns
        self.evicted: list[tuple[Pod, str]] = []
        self._cluster = cluster
        self._spec = policy.spec
        self._disruptions = Disruptions(Budgets(cluster.all(PodDisruptionBudget)))
        self._evicted_keys: set[str] = set()
        selector = policy.node_selector
        self.nodes = [node for node in cluster.all(Node) if is_ready(node) and selector.matches(node.metadata.labels)]
        self.pods: dict[str, list[Pod]] = {node.metadata.name: [] for node in self.nodes}
        self.waiting = [pod for pod in cluster.all(Pod) if not pod.spec.node_name]
        self._owned: dict[str, int] = {}
        for pod in cluster.all(Pod):
            if not is_active(pod):
                continue
            owner = pod.metadata.controller()
            if owner is not None:
                self._owned[owner.uid] = self._owned.get(owner.uid, 0) + 1
            if pod.spec.node_name in self.pods:
                self.pods[pod.spec.node_name].append(pod)

    # --- reading ------------------------------------------------------------------------------------------------------

    def requests(self, pod: Pod) -> Amounts:
        """Return the requests of a pod, including 1 of the resource ``pods``."""
        return {**accounted_requests(pod, self._cluster.state.request_gates).requests, PODS: 1}

    def used(self, node: Node) -> dict[str, int]:
        """Return the total requests of a node's pods, excluding pods evicted in this run."""
        found: dict[str, int] = {}
        for pod in self.remaining(node.metadata.name):
            for name, amount in self.requests(pod).items():
                found[name] = found.get(name, 0) + amount
        return found

    def remaining(self, node_name: str) -> list[Pod]:
        """Return the pods of a node, excluding pods evicted in this run."""
        return [pod for pod in self.pods[node_name] if pod.key not in self._evicted_keys]

    def age_ns(self, pod: Pod) -> int:
        """Return the age of a pod in nanoseconds."""
        created = pod.metadata.creation_timestamp
        return self.now_ns - parse_time_ns(created) if created is not None else 0

    def accepts(self, node: Node, pod: Pod, *, room: bool = True) -> bool:
        """Return whether a node accepts a pod: cordons, taints, node affinity and, with `room`, its free resources."""
        if node.spec.unschedulable or any(
            taint.effect in _REJECTING
            and not any(tolerates(each, taint, comparison_operators=True) for each in pod.spec.tolerations)
            for taint in node.spec.taints
        ):
            return False
        if not compile_required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name):
            return False
        if not room:
            return True
        offered, used = node_amounts(node.status.allocatable), self.used(node)
        return all(used.get(name, 0) + amount <= offered.get(name, 0) for name, amount in self.requests(pod).items())

    # --- evicting -----------------------------------------------------------------------------------------------------

    def is_evictable(self, pod: Pod, evictor: EvictorArgs) -> bool:
        """Return whether the evictor allows a pod to be evicted."""
        owner = pod.metadata.controller()
        if pod.key in self._evicted_keys or MIRROR in pod.metadata.annotations or is_daemon_pod(pod):
            return False
        if EVICT_ANNOTATION in pod.metadata.annotations:
            return True
        priority = pod.spec.priority or 0
        if owner is None or (priority >= self._limit(evictor) and not evictor.evict_system_critical_pods):
            return False
        if not selects(evictor.label_selector, pod) or self._owned.get(owner.uid, 0) < evictor.min_replicas:
            return False
        volumes = pod.spec.volumes
        if not evictor.evict_local_storage_pods and any(each.empty_dir or each.host_path for each in volumes):
            return False
        if evictor.ignore_pvc_pods and any(each.persistent_volume_claim is not None for each in volumes):
            return False
        return not evictor.node_fit or any(
            self.accepts(node, pod) for node in self.nodes if node.metadata.name != pod.spec.node_name
        )

    def _limit(self, evictor: EvictorArgs) -> int:
        threshold = evictor.priority_threshold
        if threshold is None:
            return SYSTEM_CRITICAL
        if threshold.value is not None:
            return threshold.value
        found = self._cluster.get(PriorityClass, threshold.name)
        if found is not None:
            return found.value
        system = {each.metadata.name: each.value for each in SYSTEM_PRIORITY_CLASSES}
        if threshold.name not in system:
            wanted = "the name of a PriorityClass of the cluster"
            raise InputError("DefaultEvictor $.priorityThreshold.name", wanted=wanted, got=repr(threshold.name))
        return system[threshold.name]

    def evict(self, pod: Pod, plugin: str) -> bool:
        """Evict a pod, unless a limit or a disruption budget forbids it; return whether it is evicted."""
        spec, evicted = self._spec, [each for each, _ in self.evicted]
        on_node = sum(each.spec.node_name == pod.spec.node_name for each in evicted)
        in_namespace = sum(each.metadata.namespace == pod.metadata.namespace for each in evicted)
        for limit, count in (
            (spec.max_no_of_pods_to_evict_total, len(evicted)),
            (spec.max_no_of_pods_to_evict_per_node, on_node if pod.spec.node_name else 0),
            (spec.max_no_of_pods_to_evict_per_namespace, in_namespace),
        ):
            if limit is not None and count >= limit:
                return False
        if not self._disruptions.try_evict(pod):
            return False
        self.evicted.append((pod, plugin))
        self._evicted_keys.add(pod.key)
        return True


def selects(selector: LabelSelector | None, pod: Pod) -> bool:
    """Return whether a label selector matches a pod; no selector matches all pods."""
    return selector is None or compile_label_selector(selector).matches(pod.metadata.labels)


def by_priority(pods: Sequence[Pod]) -> list[Pod]:
    """Return pods in the order of eviction: the lowest priority first."""
    return sorted(pods, key=lambda pod: (pod.spec.priority or 0, pod.key))
