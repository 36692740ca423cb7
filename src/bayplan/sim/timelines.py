"""Keeps the timelines of pods and nodes, from the changes in the virtual cluster."""

from __future__ import annotations

from bayplan.cluster.store import ObjectStore, changes_owners
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import key_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.sim.result import FATES, PodFate, PodTimeline
from bayplan.sim.scaling import NodeLifetime
from bayplan.sim.usage import ZONE_LABEL
from bayplan.sim.workloads import Workloads


class Timelines:
    """The timelines of all pods and nodes of a run.

    Args:
        store: the store that contains the owners of pods.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.pods: list[PodTimeline] = []
        self.nodes: list[NodeLifetime] = []
        self._live_pods: dict[str, PodTimeline] = {}
        self._live_nodes: dict[str, NodeLifetime] = {}
        self._workloads = Workloads(store)
        self._by_workload: dict[str, list[PodTimeline]] = {}

    def of_pod(self, key: str) -> PodTimeline | None:
        """Return the timeline of an existing pod."""
        return self._live_pods.get(key)

    def record(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> None:
        """Process a change in the cluster, given the object before and after it."""
        if isinstance(new, Pod):
            self._pod(new, now_ns)
        elif isinstance(old, Pod):
            timeline = self._live_pods.pop(key_of(old), None)
            if timeline is not None and timeline.ended_ns is None:
                timeline.ended_ns, timeline.fate = now_ns, PodFate.DELETED
            elif timeline is not None and timeline.fate is PodFate.FAILED and timeline.disruption:
                # If its node is gone, the pod garbage collector marks a pod as failed before it deletes it.
                timeline.fate = PodFate.DELETED
        elif isinstance(new, Node):
            self._node(new, now_ns)
        elif isinstance(old, Node):
            lifetime = self._live_nodes.pop(old.metadata.name, None)
            if lifetime is not None:
                lifetime.removed_ns = now_ns
        elif new is None:
            if old is not None:
                self._workloads.forget(old)
        elif changes_owners(old, new):
            self._owner(new)

    def _owner(self, new: KubernetesObject) -> None:
        """Correct the workloads of pods that were added before their owner: dumps list pods before ReplicaSets."""
        workload = self._workloads.update(new)
        orphans = self._by_workload.pop(f"{type(new).__name__} {new.key}", None)
        if not orphans:
            return
        for timeline in orphans:
            timeline.workload = workload
        self._by_workload.setdefault(workload, []).extend(orphans)

    def _pod(self, new: Pod, now_ns: int) -> None:
        key = key_of(new)
        timeline = self._live_pods.get(key)
        spec, status = new.spec, new.status
        if timeline is None:
            timeline = PodTimeline(
                key=key,
                uid=new.metadata.uid,
                workload=self._workloads.of(new)[0],
                priority=spec.priority or 0,
                scheduler_name=spec.scheduler_name,
                arrived_ns=now_ns,
                imported=bool(spec.node_name),
            )
            self.pods.append(timeline)
            if timeline.workload:
                self._by_workload.setdefault(timeline.workload, []).append(timeline)
            self._live_pods[key] = timeline
        before = timeline.pod
        timeline.pod = new
        if timeline.node and before is not None and status.conditions is not before.status.conditions:
            timeline.disruption = timeline.disruption or _disruption(new)
        if spec.node_name and timeline.bound_ns is None:
            timeline.bound_ns, timeline.node = now_ns, spec.node_name
            timeline.fate = PodFate.PLACED
        if status.phase == "Running":
            if timeline.started_ns is None:
                timeline.started_ns = now_ns
        elif timeline.ended_ns is None and status.phase in FATES:
            timeline.ended_ns, timeline.fate = now_ns, FATES[status.phase]

    def _node(self, node: Node, now_ns: int) -> None:
        name = node.metadata.name
        lifetime = self._live_nodes.get(name)
        if lifetime is None:
            zone = node.metadata.labels.get(ZONE_LABEL, "")
            lifetime = self._live_nodes[name] = NodeLifetime(name=name, zone=zone, node=node, added_ns=now_ns)
            self.nodes.append(lifetime)
        lifetime.node = node

    def close(self, queue: SchedulingQueue, profiles: frozenset[str]) -> None:
        """Set the state of all pods that still wait for a node."""
        for key, timeline in self._live_pods.items():
            if timeline.bound_ns is not None or timeline.ended_ns is not None:
                continue
            if timeline.scheduler_name not in profiles:
                timeline.fate = PodFate.UNATTENDED
                continue
            queued = queue.get(key)
            gated = queued is not None and bool(queued.gating_plugin)
            timeline.fate = PodFate.GATED if gated else PodFate.PENDING


def _disruption(pod: Pod) -> str:
    """Return why a pod is being evicted, or `""`."""
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return condition.reason
    return ""
