"""The kubelet of all nodes without a real kubelet: nodes become ready; pods start, end, and are removed when deleted.

`bayplan.cluster.kubelet` implements these steps; this module decides when to run them. It works from the current pods,
so it treats pods bound before the server started like new pods. A running pod continues to run, and ends when the run
time in its annotation has passed since its start.

A node whose Lease another client renews has a real kubelet and is ignored.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from msgspec.structs import replace

from bayplan.apiserver.bridge.api_writer import ApiWriter
from bayplan.apiserver.bridge.event_recorder import EventRecorder
from bayplan.apiserver.bridge.network import NodeAddresses, pod_addresses
from bayplan.apiserver.bridge.node_facts import completed, is_incomplete
from bayplan.apiserver.bridge.typed_store import TypedStore
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.cluster.kubelet import DEFAULT_GRACE_SECONDS, KILL, RETRY_DELAY_NS, START, KubeletOptions, VirtualKubelet
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.pod_status import ended_status
from bayplan.cluster.run_time import ENDS_BY_ITSELF, RUN_TIME_ANNOTATION
from bayplan.cluster.store import ADDED, ChangeEvent
from bayplan.cluster.timers import Timers
from bayplan.controllers.node_lifecycle import has_ready_condition
from bayplan.controllers.writer import ANSWER_WAIT_NS, WARNING, AwaitsAnswers, WriteRejected
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

_EXIT_CODE_OF_SIGTERM = 143


class Kubelet(VirtualKubelet):
    """Runs pods over the API.

    Args:
        store: the typed objects.
        writer: writes typed objects through the API.
        options: see `KubeletOptions`.
        recorder: the recorder of events.

    Attributes:
        foreign: the names of the nodes that have a real kubelet.
        failures: the refused writes that will be tried again, by ``Kind key``.
    """

    def __init__(self, store: TypedStore, writer: ApiWriter, options: KubeletOptions, recorder: EventRecorder) -> None:
        super().__init__(store, options, writer)
        self._recorder = recorder
        self._addresses = NodeAddresses()
        self._new_nodes: deque[str] = deque()
        self._incomplete_nodes: deque[str] = deque()
        self._taken: dict[str, None] = {}
        self._killing: dict[str, int] = {}
        # The nodes whose writes were refused, each with one timer.
        self._refused_nodes: dict[str, None] = {}
        self._node_timers: Timers[str] = Timers()
        self.foreign: dict[str, None] = {}
        self.failures: dict[str, InputError] = {}

    # --- planning -----------------------------------------------------------------------------------------------------

    def observe(self, event: ChangeEvent, now_ns: int) -> None:
        """Plan the tasks that follow from a change."""
        item = event.object
        if self.failures:
            self.failures.pop(f"{type(item).__name__} {item.key}", None)
        if isinstance(item, Pod):
            if event.new is None:
                self._taken.pop(item.metadata.uid, None)
                self._killing.pop(item.metadata.uid, None)
                self._start_groups.remove(item)
            elif item.spec.node_name in self._store.nodes:
                self._see(item, now_ns)
        elif isinstance(item, Node):
            self._addresses.observe(item, gone=event.new is None)
            if event.new is None:
                return
            if not has_ready_condition(item):
                self._new_nodes.append(item.metadata.name)
            elif is_incomplete(item):
                self._incomplete_nodes.append(item.metadata.name)
            if event.type == ADDED:
                for pod in self._store.pods_on(item.metadata.name):
                    self._see(pod, now_ns)

    def _see(self, pod: Pod, now_ns: int) -> None:
        uid = pod.metadata.uid
        if pod.spec.node_name in self.foreign:
            return
        if pod.metadata.deletion_timestamp is not None:
            self._plan_kill(pod, now_ns)
        elif uid not in self._taken and not is_finished(pod):
            self._taken[uid] = None
            if pod.status.phase == "Running":
                self._continue(pod, now_ns)
            else:
                self._set(now_ns + self._options.start_delay_ns, START, pod)

    def _plan_kill(self, pod: Pod, now_ns: int) -> None:
        grace = pod.metadata.deletion_grace_period_seconds
        seconds = 0 if is_finished(pod) else DEFAULT_GRACE_SECONDS if grace is None else grace
        until_ns = now_ns + min(seconds * SECOND_NS, self._options.termination_time_ns)
        known = self._killing.get(pod.metadata.uid)
        if known is None or until_ns < known:
            self._killing[pod.metadata.uid] = until_ns
            self._set(until_ns, KILL, pod)
            if known is None and not is_finished(pod):
                for container in pod.spec.containers:
                    text = f"Stopping container {container.name}"
                    self._recorder.of_container(pod, container.name, "Killing", text)

    def _continue(self, pod: Pod, now_ns: int) -> None:
        started = pod.status.start_time
        self._plan_end(pod, parse_time_ns(started) if started is not None else now_ns, now_ns)

    # --- acting -------------------------------------------------------------------------------------------------------

    def next_wakeup(self) -> int | None:
        """Return the time at which `advance_one` has a task, 0 for immediately, or None if there is none."""
        if self._new_nodes or self._incomplete_nodes:
            return 0
        times = (super().next_wakeup(), self._node_timers.next_time)
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def advance_one(self, now_ns: int) -> bool:
        """Make a new node ready, or execute the first due task, and return whether there was either.

        Raises:
            WriteRejected: the API rejects the write.
        """
        while (due := self._node_timers.pop_due(now_ns)) is not None:
            del self._refused_nodes[due[1]]
            self._new_nodes.append(due[1])
        if self._new_nodes:
            self._complete(self._new_nodes.popleft(), now_ns)
            return True
        return super().advance_one(now_ns)

    def complete_one(self, now_ns: int) -> bool:
        """Write the missing fields of a node that is already ready, and return whether there was one.

        Called when nothing else is due.

        Raises:
            WriteRejected: the API rejects the write.
        """
        if not self._incomplete_nodes:
            return False
        self._complete(self._incomplete_nodes.popleft(), now_ns)
        return True

    def _complete(self, name: str, now_ns: int) -> None:
        """Write the missing fields of a node, including the condition Ready."""
        node = self._store.nodes.get(name)
        if node is None or name in self.foreign or not is_incomplete(node):
            return
        is_new = not has_ready_condition(node)
        try:
            self._pods.update(completed(node, self._addresses, format_time(now_ns)))
        except WriteRejected as problem:
            delay_ns = self._note_failure(f"Node {name}", problem)
            if name not in self._refused_nodes:
                self._refused_nodes[name] = None
                self._node_timers.set(now_ns + delay_ns, name)
            raise
        if is_new:
            self._recorder.record(node, "NodeReady", f"Node {name} status is now: NodeReady", "kubelet", host=name)

    def retry_delay_ns(self, key: str, problem: InputError) -> int:
        """Record a failure, and return the delay before the next try."""
        return self._note_failure(f"Pod {key}", problem)

    def _note_failure(self, name: str, problem: InputError) -> int:
        if isinstance(problem, AwaitsAnswers):
            return ANSWER_WAIT_NS
        self.failures[name] = problem
        return RETRY_DELAY_NS

    def _plan_end(self, pod: Pod, start_ns: int, now_ns: int) -> None:
        try:
            super()._plan_end(pod, start_ns, now_ns)
        except InputError as problem:
            # The pod runs until it is deleted; record the reason as an event.
            self._recorder.record(
                pod, "InvalidRunTime", str(problem), "kubelet", type_=WARNING, host=pod.spec.node_name
            )

    def _start(self, pod: Pod, time_ns: int) -> None:
        if pod.status.phase == "Running":
            # Another client has started the pod.
            self._continue(pod, time_ns)
            return
        started = self._pods.update(self._started(pod, time_ns))
        # After the write, because it may be refused and tried again.
        for container in pod.spec.containers:
            image = f'Container image "{container.image}" already present on machine and can be accessed by the pod'
            for reason, text in (("Pulled", image), ("Created", "Container created"), ("Started", "Container started")):
                self._recorder.of_container(pod, container.name, reason, text)
        self._plan_end(started, time_ns, time_ns)

    def _started(self, pod: Pod, now_ns: int) -> Pod:
        started = super()._started(self._with_run_time(pod), now_ns)
        # The pod's address comes from the node's CIDR, so complete the node first. The pod starts even if that fails.
        if pod.spec.node_name not in self._refused_nodes:
            with suppress(WriteRejected):
                self._complete(pod.spec.node_name, now_ns)
        pod_ip, host_ip = pod_addresses(pod, self._store)
        status = replace(started.status, pod_ip=pod.status.pod_ip or pod_ip, host_ip=pod.status.host_ip or host_ip)
        return replace(started, status=status)

    def _with_run_time(self, pod: Pod) -> Pod:
        """Return a pod with the default run time annotated, if it can end by itself and has no annotation.

        After a restart of the server, the annotation distinguishes the pods that this kubelet started from pods that
        were imported running.
        """
        default, metadata = self._options.default_run_time, pod.metadata
        if not default or pod.spec.restart_policy not in ENDS_BY_ITSELF or RUN_TIME_ANNOTATION in metadata.annotations:
            return pod
        annotations = {**metadata.annotations, RUN_TIME_ANNOTATION: default}
        return replace(pod, metadata=replace(metadata, annotations=annotations))

    def _remove(self, pod: Pod, now_ns: int) -> None:
        self._start_groups.remove(pod)
        if pod.metadata.finalizers and not is_finished(pod):
            # The owners of its finalizers, such as a Job, must see that the pod has ended.
            status = ended_status(pod, format_time(now_ns), _EXIT_CODE_OF_SIGTERM, container_statuses=True)
            self._pods.update(replace(pod, status=status))
        if not pod.metadata.finalizers or pod.metadata.deletion_grace_period_seconds != 0:
            self._pods.remove(Pod, pod.key)
