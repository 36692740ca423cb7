"""Node lifecycle: taints for node conditions, and the eviction of pods that do not tolerate them.

A node that is cordoned, not ready, unreachable, without network or under pressure gets the corresponding NoSchedule
taint. A node that is not ready or unreachable also gets the NoExecute taint, and its pods are evicted when their
toleration expires (300 seconds by default). A node without conditions, as in manifests, counts as healthy.

Not implemented: heartbeats (no node becomes unreachable by itself) and the reduced eviction rate when much of a zone is
down. Source: pkg/controller/nodelifecycle and pkg/controller/tainteviction v1.36.3,
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time
from bayplan.cluster.owned_pods import is_active
from bayplan.cluster.pod_status import with_condition
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod, PodCondition
from bayplan.objects.selectors import tolerates

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"

_BY_CONDITION = {
    ("Ready", "False"): NOT_READY_TAINT,
    ("Ready", "Unknown"): UNREACHABLE_TAINT,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_NO_EXECUTE = (NOT_READY_TAINT, UNREACHABLE_TAINT)
_MANAGED = frozenset(
    [(key, "NoSchedule") for key in (UNSCHEDULABLE_TAINT, *_BY_CONDITION.values())]
    + [(key, "NoExecute") for key in _NO_EXECUTE]
)


class NodeLifecycleController(Controller):
    """Reconciles nodes, by name.

    Args:
        tools: see `ControllerTools`.
        waits_for_kubelets: whether to ignore a node until it has a Ready condition; otherwise a node without the
            condition counts as healthy.

    Attributes:
        evicting: for each node with NoExecute taints, by name: the times (ns) at which its pods were first observed
            while it had the taints, by pod uid. A new pod on one of these nodes queues the node.
    """

    kind = Node
    component = "node-controller"
    # Upstream examines the nodes every 5 s.
    retry_delays_ns = (5 * SECOND_NS, 5 * SECOND_NS)
    watches = (Node,)

    def __init__(self, tools: ControllerTools, *, waits_for_kubelets: bool = False) -> None:
        super().__init__(tools)
        self._waits_for_kubelets = waits_for_kubelets
        self._registered: dict[str, None] = {}
        self.evicting: dict[str, dict[str, int]] = {}

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the name of the node that changed."""
        return (event.object.metadata.name,)

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Set the taints of a node, then evict the pods whose toleration has expired."""
        node = self.store.nodes.get(key)
        if node is None:
            self.evicting.pop(key, None)
            self._registered.pop(key, None)
            return None
        if self._waits_for_kubelets:
            self._register(node)
            if not has_ready_condition(node):
                return None
        taints = _wanted_taints(node, now_ns)
        if taints != node.spec.taints:
            node = self.writer.update(replace(node, spec=replace(node.spec, taints=taints)))
        evicting = tuple(taint for taint in taints if taint.effect == "NoExecute")
        if not evicting:
            self.evicting.pop(key, None)
            return None
        self.evicting.setdefault(key, {})
        again_ns: int | None = None
        rejected = RejectedWrites()
        left = self.burst
        for pod in self.store.pods_on(key):
            if not is_active(pod):
                continue
            leave_ns = self._leave_time(pod, evicting, now_ns)
            if leave_ns is None:
                continue
            if leave_ns <= now_ns:
                if not left:
                    return rejected.result(now_ns, now_ns)
                with rejected:
                    self._evict(pod, now_ns)
                    left -= 1
            else:
                again_ns = leave_ns if again_ns is None else min(again_ns, leave_ns)
        return rejected.result(again_ns, now_ns)

    def _register(self, node: Node) -> None:
        """Record an event about a new node."""
        name = node.metadata.name
        if name not in self._registered:
            self._registered[name] = None
            self.record(node, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")

    def _leave_time(self, pod: Pod, taints: tuple[Taint, ...], now_ns: int) -> int | None:
        """Return the time (ns) at which a pod must leave: now for an untolerated taint, None if it may stay forever.

        For each taint, the first toleration that matches counts, from the time when pod and taints were first observed
        together.
        """
        seen = self.evicting[pod.spec.node_name]
        seconds: int | None = None
        for taint in taints:
            fitting = (item for item in pod.spec.tolerations if tolerates(item, taint, comparison_operators=False))
            toleration = next(fitting, None)
            if toleration is None:
                return now_ns
            limit = toleration.toleration_seconds
            if limit is not None:
                seconds = max(limit, 0) if seconds is None else min(seconds, max(limit, 0))
        if seconds is None:
            seen.pop(pod.metadata.uid, None)
            return None
        return seen.setdefault(pod.metadata.uid, now_ns) + seconds * SECOND_NS

    def _evict(self, pod: Pod, now_ns: int) -> None:
        condition = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
            last_transition_time=format_time(now_ns),
        )
        pod = self.writer.update(replace(pod, status=with_condition(pod.status, condition)))
        self.writer.delete(pod, now_ns)
        self.evicting[pod.spec.node_name].pop(pod.metadata.uid, None)
        text = f"Marking for deletion Pod {pod.key}"
        self.writer.record(pod, "TaintManagerEviction", text, "taint-eviction-controller")


def has_ready_condition(node: Node) -> bool:
    """Return whether a node has a Ready condition, with any status."""
    return any(condition.type == "Ready" for condition in node.status.conditions)


def _wanted_taints(node: Node, now_ns: int) -> tuple[Taint, ...]:
    """Return the taints that a node should have: the taints that other clients set, and the taints for its state."""
    keys = [UNSCHEDULABLE_TAINT] if node.spec.unschedulable else []
    for condition in node.status.conditions:
        key = _BY_CONDITION.get((condition.type, condition.status))
        if key is not None:
            keys.append(key)
    wanted = dict.fromkeys((key, "NoSchedule") for key in keys)
    wanted.update(dict.fromkeys((key, "NoExecute") for key in keys if key in _NO_EXECUTE))
    kept = tuple(
        taint
        for taint in node.spec.taints
        if (taint.key, taint.effect) not in _MANAGED or (taint.key, taint.effect) in wanted
    )
    present = {(taint.key, taint.effect) for taint in kept}
    timestamp = format_time(now_ns)
    added = tuple(
        Taint(key=key, effect=effect, time_added=timestamp) for key, effect in wanted if (key, effect) not in present
    )
    return kept + added if added or len(kept) != len(node.spec.taints) else node.spec.taints
