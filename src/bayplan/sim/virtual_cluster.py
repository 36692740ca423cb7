"""The virtual cluster: store, controllers and kubelet behind one interface, for hosts (simulator, API server)."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster import owned_pods
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.kubelet import KubeletOptions, VirtualKubelet
from bayplan.cluster.naming import NameGenerator
from bayplan.cluster.pod_status import bound_status, with_condition
from bayplan.cluster.store import ChangeEvent, Kind, ObjectStore
from bayplan.cluster.volume_controller import volume_writes
from bayplan.controllers.controller import ControllerTools
from bayplan.controllers.disruption import DisruptionController
from bayplan.controllers.garbage_collector import StoreGarbageCollector
from bayplan.controllers.manager import ControllerManager, workload_controllers
from bayplan.controllers.node_lifecycle import NodeLifecycleController
from bayplan.controllers.persistent_volumes import PersistentVolumeController
from bayplan.controllers.pod_claims import PodClaimController
from bayplan.controllers.pod_factory import PodFactory
from bayplan.controllers.pod_gc import PodGarbageCollector
from bayplan.controllers.resource_claims import ResourceClaimController
from bayplan.controllers.writer import Propagation
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, PodCondition
from bayplan.sim.store_writer import StoreWriter
from bayplan.sim.virtual_api import Arrival

T = TypeVar("T", bound=KubernetesObject)


class ClusterOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a virtual cluster.

    Attributes:
        kubelet: see `KubeletOptions`.
        sync_delay_ns: the delay until controllers see a change.
        terminated_pod_threshold: the number of finished pods to keep before the oldest are deleted; 0 for all.
    """

    kubelet: KubeletOptions = msgspec.field(default_factory=KubeletOptions)
    sync_delay_ns: int = 0
    terminated_pod_threshold: int = 0


class VirtualCluster:
    """A cluster without machines.

    Args:
        streams: the random streams of names and uids.
        options: see `ClusterOptions`.

    Attributes:
        store: the objects; callers must not write to it, because the events of such writes would be lost.
    """

    def __init__(self, streams: RandomStreams, options: ClusterOptions | None = None) -> None:
        options = options or ClusterOptions()
        self.store = ObjectStore(streams.stream("cluster.uids"))
        names = NameGenerator(streams.stream("cluster.names"))
        admission = PodAdmission(self.store)
        self._wakeup_ns: int | None = None
        self._kubelet = VirtualKubelet(self.store, options.kubelet)
        self._starts_at_once = options.kubelet.start_delay_ns <= 0
        self._writer = StoreWriter(self.store, self._kubelet)
        self._arrival = Arrival(self.store, self._kubelet, admission, names)
        tools = ControllerTools(self.store, self._writer, PodFactory(self.store, self._writer, names, admission))
        pod_gc = PodGarbageCollector(tools, terminated_pod_threshold=options.terminated_pod_threshold)
        node_lifecycle = NodeLifecycleController(tools)
        claims = (PodClaimController(tools, names), ResourceClaimController(tools))
        self._manager = ControllerManager(
            self.store,
            workload_controllers(tools),
            others=(node_lifecycle, pod_gc, DisruptionController(tools), *claims, PersistentVolumeController(tools)),
            garbage_collector=StoreGarbageCollector(tools),
            pod_gc=pod_gc,
            node_lifecycle=node_lifecycle,
            admission=admission,
            sync_delay_ns=options.sync_delay_ns,
        )

    # --- requests of users --------------------------------------------------------------------------------------------

    def apply(self, item: KubernetesObject, now_ns: int) -> list[ChangeEvent]:
        """Create an object, or replace the existing object with its kind and key; no events if nothing changes.

        A new object gets defaults, a uid and a creation time. A new pod without a uid also passes admission (priority,
        default tolerations); one with a uid was admitted elsewhere and is stored as it is. A change keeps the server's
        fields (uid, times, the status of workloads, a pod's node) and fields that the new version leaves out (owners,
        finalizers, status).

        Args:
            item: the new version.
            now_ns: the current time.

        Raises:
            InputError: a pod has a priority class that does not exist, or an annotation is invalid.
        """
        self._arrival.apply(item, now_ns)
        return self._close(now_ns)

    def put(self, item: KubernetesObject, now_ns: int) -> list[ChangeEvent]:
        """Store a version of an object unchanged, for hosts with their own rules for changes.

        It gets no defaults, passes no admission, and is not merged: only the uid and the creation time of an existing
        object are kept. An object that is being deleted is removed if this version has no finalizers left. No events if
        nothing changes.

        Args:
            item: the complete object.
            now_ns: the current time.
        """
        self._arrival.put(item, now_ns)
        return self._close(now_ns)

    def delete(
        self,
        kind: Kind,
        key: str,
        now_ns: int,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        grace_seconds: int | None = None,
    ) -> list[ChangeEvent]:
        """Delete an object, and its dependents according to `propagation`. No events if it does not exist.

        Args:
            kind: its class, e.g. `Deployment`.
            key: its key: `namespace/name`, or `name` for cluster-scoped objects.
            now_ns: the current time.
            propagation: see `Propagation`.
            grace_seconds: the grace period of pods; None for the pods' own, 0 to delete them at once.
        """
        item = self.store.get(kind, key)
        if item is not None:
            self._writer.delete(item, now_ns, grace_seconds=grace_seconds, propagation=propagation)
        return self._close(now_ns)

    def cordon(self, node_name: str, now_ns: int, *, unschedulable: bool = True) -> list[ChangeEvent]:
        """Mark a node unschedulable, or schedulable again. No events if it already is, or does not exist."""
        node = self.store.nodes.get(node_name)
        if node is None:
            return []
        return self.apply(replace(node, spec=replace(node.spec, unschedulable=unschedulable)), now_ns)

    # --- requests of the scheduler ------------------------------------------------------------------------------------

    def bind(self, pod_key: str, node_name: str, now_ns: int) -> list[ChangeEvent]:
        """Bind a pod to a node. Without a start delay, it starts to run with the same event.

        Returns:
            One MODIFIED event; none if the binding is rejected, because the pod does not exist, already has a node, has
            finished, or is being deleted.

        Raises:
            InputError: the annotation with the pod's run time is invalid.
        """
        pod = self.store.pods.get(pod_key)
        if (
            pod is None
            or pod.spec.node_name
            or pod.metadata.deletion_timestamp is not None
            or owned_pods.is_finished(pod)
        ):
            return []
        pod = replace(pod, spec=replace(pod.spec, node_name=node_name))
        known = node_name in self.store.nodes
        if not known or not self._starts_at_once:
            pod = replace(pod, status=bound_status(pod, format_time(now_ns)))
        self.store.update(self._kubelet.add_pod(pod, now_ns) if known else pod)
        return self._close(now_ns)

    def write_volume(self, item: KubernetesObject, node_name: str, now_ns: int) -> list[ChangeEvent]:
        """Write a volume or claim for a pod that is being scheduled.

        Volume claims are bound at once (see `volume_writes`).

        Args:
            item: a volume reserved for a claim, a volume claim with the selected node, or a resource claim with its
                allocation and users, which is created if it has no uid.
            node_name: the name of the node.
            now_ns: the current time.

        Returns:
            The events of all writes; none if the object does not exist.
        """
        if item.metadata.uid and self.store.get(type(item), item.key) is None:
            return []
        for changed in volume_writes(item, self.store, self.store.nodes.get(node_name)):
            if self.store.get(type(changed), changed.key) is None:
                self.store.add(changed, now_ns)
            else:
                self.store.update(changed)
        return self._close(now_ns)

    def evict(
        self, pod_key: str, now_ns: int, *, preemptor: Pod | None = None, grace_seconds: int | None = None
    ) -> list[ChangeEvent]:
        """Delete a pod for the scheduler. No events if it does not exist.

        Args:
            pod_key: the key of the victim.
            now_ns: the current time.
            preemptor: the preempting pod; the victim then gets the condition DisruptionTarget.
            grace_seconds: the grace period, instead of the pod's own.
        """
        reason = text = ""
        if preemptor is not None:
            reason = "PreemptionByScheduler"
            text = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
        return self._disrupt(pod_key, reason, text, now_ns, grace_seconds)

    def evict_by_api(self, pod_key: str, now_ns: int) -> list[ChangeEvent]:
        """Evict a pod like the eviction API, but without checking disruption budgets.

        No events if it does not exist.
        """
        return self._disrupt(pod_key, "EvictionByEvictionAPI", "Eviction API: evicting", now_ns, None)

    def _disrupt(
        self, pod_key: str, reason: str, message: str, now_ns: int, grace_seconds: int | None
    ) -> list[ChangeEvent]:
        """Delete a pod; if there is a reason, write its condition DisruptionTarget first."""
        pod = self.store.pods.get(pod_key)
        if pod is None:
            return []
        if reason:
            condition = PodCondition(
                type="DisruptionTarget",
                status="True",
                reason=reason,
                message=message,
                last_transition_time=format_time(now_ns),
            )
            status = with_condition(pod.status, condition)
            if status is not pod.status:
                pod = self.store.update(replace(pod, status=status))
        self._writer.delete(pod, now_ns, grace_seconds=grace_seconds)
        return self._close(now_ns)

    def set_nominated(self, pod_key: str, node_name: str, now_ns: int) -> list[ChangeEvent]:
        """Set the nominated node of a pod, or clear it (`""`). No events if nothing changes."""
        pod = self.store.pods.get(pod_key)
        if pod is None or pod.status.nominated_node_name == node_name:
            return []
        self.store.update(replace(pod, status=replace(pod.status, nominated_node_name=node_name)))
        return self._close(now_ns)

    def set_unschedulable(self, pod_key: str, reason: str, message: str, now_ns: int) -> list[ChangeEvent]:
        """Set the condition PodScheduled of a pod to False, with reason and message. No events if nothing changes."""
        pod = self.store.pods.get(pod_key)
        if pod is None or pod.spec.node_name:
            return []
        condition = PodCondition(
            type="PodScheduled",
            status="False",
            reason=reason,
            message=message,
            last_transition_time=format_time(now_ns),
        )
        status = with_condition(pod.status, condition)
        if status is pod.status:
            return []
        self.store.update(replace(pod, status=status))
        return self._close(now_ns)

    # --- time ---------------------------------------------------------------------------------------------------------

    def next_wakeup(self) -> int | None:
        """Return when `advance` has work next; if controllers have work, that is the time of the last write.

        None if there is nothing to do until an object is written.
        """
        return self._wakeup_ns

    def _find_wakeup(self) -> int | None:
        manager, kubelet = self._manager.next_wakeup(), self._kubelet.next_wakeup()
        if manager is None or kubelet is None:
            return manager if kubelet is None else kubelet
        return min(manager, kubelet)

    def advance(self, now_ns: int) -> list[ChangeEvent]:
        """Execute all due tasks, each at its own time, the kubelet's before the controllers'.

        Raises:
            InputError: the annotation with a pod's run time is invalid.
        """
        while (time_ns := self._find_wakeup()) is not None and time_ns <= now_ns:
            self._kubelet.advance(time_ns)
            self._manager.follow(time_ns)
            self._manager.run(time_ns)
        return self._close(now_ns)

    def failures(self) -> dict[str, InputError]:
        """Return the failures of controllers by `Kind key`; most likely, a priority class does not exist."""
        return dict(self._manager.failures)

    def _close(self, now_ns: int) -> list[ChangeEvent]:
        """Queue the controllers' reactions to the writes of this call, and return the events of these writes."""
        self._manager.close(now_ns)
        self._wakeup_ns = self._find_wakeup()
        return self.store.take_journal()
