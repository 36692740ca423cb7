"""The kubelet of every node that has none of its own: nodes become ready, pods start, end, and go when they are deleted.

What it does with pods is `bayplan.cluster.kubelet`; this is when: it looks at pods as they are, so that it makes no difference
whether they were bound a moment ago or before the server was started. A pod that runs goes on running, and ends as long after
its start as its annotation says.

A node whose Lease somebody else renews has a kubelet of its own and is left alone.
"""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from bayplan.apiserver.bridge.controlled_store import ControlledStore
from bayplan.apiserver.bridge.event_recorder import WARNING, EventRecorder
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.cluster.kubelet import DEFAULT_GRACE_SECONDS, KILL, START, KubeletOptions, VirtualKubelet
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.pod_status import ended_status
from bayplan.cluster.store import ADDED, ChangeEvent
from bayplan.cluster.timestamps import format_time
from bayplan.objects.meta import parse_time_ns
from bayplan.objects.node import Node, NodeCondition
from bayplan.objects.pod import Pod

_EXIT_CODE_OF_SIGTERM = 143
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def says_whether_ready(node: Node) -> bool:
    """Say whether somebody has written the condition Ready of a node, true or not."""
    return any(condition.type == "Ready" for condition in node.status.conditions)


class NodeAgent(VirtualKubelet):
    """Run pods over the API.

    Args:
        store: typed objects, written through the API.
        options: see `KubeletOptions`.
        recorder: of events for people.

    Attributes:
        foreign: nodes that have a kubelet of their own.
    """

    def __init__(self, store: ControlledStore, options: KubeletOptions, recorder: EventRecorder) -> None:
        super().__init__(store, options)
        self._recorder = recorder
        self._new_nodes: deque[str] = deque()
        self._taken: dict[str, None] = {}
        self._killing: dict[str, int] = {}
        self.foreign: dict[str, None] = {}

    # --- looking ------------------------------------------------------------------------------------------------------

    def observe(self, event: ChangeEvent, now_ns: int) -> None:
        """Plan what a change makes necessary."""
        item = event.object
        if isinstance(item, Pod):
            if event.new is None:
                self._taken.pop(item.metadata.uid, None)
                self._killing.pop(item.metadata.uid, None)
            elif item.spec.node_name in self._store.nodes:
                self._see(item, now_ns)
        elif isinstance(item, Node) and event.new is not None:
            if not says_whether_ready(item):
                self._new_nodes.append(item.metadata.name)
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
        until_ns = now_ns + int(seconds * SECOND_NS * self._options.termination_scale)
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
        """Return when `advance_one` has something to do next, 0 for at once, or None."""
        return 0 if self._new_nodes else super().next_wakeup()

    def advance_one(self, now_ns: int) -> bool:
        """Do the first thing that is due by now; say whether there was one.

        Raises:
            WriteRefused: the API refuses it.
        """
        if self._new_nodes:
            self._make_ready(self._new_nodes.popleft(), now_ns)
            return True
        return super().advance_one(now_ns)

    def _make_ready(self, name: str, now_ns: int) -> None:
        node = self._store.nodes.get(name)
        if node is None or name in self.foreign or says_whether_ready(node):
            return
        now = format_time(now_ns)
        known = {condition.type for condition in node.status.conditions}
        conditions = tuple(
            NodeCondition(
                type=type_,
                status=status,
                reason=reason,
                message=message,
                last_heartbeat_time=now,
                last_transition_time=now,
            )
            for type_, status, reason, message in _CONDITIONS
            if type_ not in known
        )
        status = replace(node.status, conditions=node.status.conditions + conditions)
        self._store.update(replace(node, status=status))
        self._recorder.record(node, "NodeReady", f"Node {name} status is now: NodeReady", "kubelet", host=name)

    def _plan_end(self, pod: Pod, start_ns: int, now_ns: int) -> None:
        try:
            super()._plan_end(pod, start_ns, now_ns)
        except InputError as problem:
            # It runs until it is deleted, and says why.
            self._recorder.record(
                pod, "InvalidRunTime", str(problem), "kubelet", type_=WARNING, host=pod.spec.node_name
            )

    def _started(self, pod: Pod, now_ns: int) -> Pod:
        if pod.status.phase == "Running":
            # Somebody else has started it.
            self._continue(pod, now_ns)
            return pod
        for container in pod.spec.containers:
            image = f'Container image "{container.image}" already present on machine and can be accessed by the pod'
            for reason, text in (("Pulled", image), ("Created", "Container created"), ("Started", "Container started")):
                self._recorder.of_container(pod, container.name, reason, text)
        return super()._started(pod, now_ns)

    def _remove(self, pod: Pod, now_ns: int) -> None:
        self._together.gone(pod)
        if pod.metadata.finalizers and not is_finished(pod):
            # Whoever holds it has to see that it has ended.
            status = ended_status(pod, format_time(now_ns), _EXIT_CODE_OF_SIGTERM, container_statuses=True)
            self._store.update(replace(pod, status=status))
        if not pod.metadata.finalizers or pod.metadata.deletion_grace_period_seconds != 0:
            self._store.remove(Pod, pod.key)
