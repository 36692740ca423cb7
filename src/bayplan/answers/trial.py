"""The host of a trial: it executes the scheduler's requests at once, in virtual time, and records the fate of pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.cluster.volume_controller import volume_writes
from bayplan.engine.actions import Action, Bind, CycleReport, Evict, Nominate, SetCondition, Update
from bayplan.engine.queued_pod import key_of
from bayplan.engine.records import Outcome, RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim

PATIENCE_NS = 240 * SECOND_NS
"""Virtual time that `Trial.settle` waits for backoffs and permits: less than the 5 min after which pods are retried anyway."""


def nothing() -> None:
    """Do nothing: the checkpoint of a question that may take as long as it needs."""


class Eviction(Struct, frozen=True):
    """A pod that was evicted to make room.

    Attributes:
        pod: ``namespace/name`` of the victim.
        node: the node of the victim.
        preemptor: the other pod.
        priority: the priority of the victim.
        controller: the controller that recreates it, ``Kind/name``; "" if none does.
    """

    pod: str
    node: str
    preemptor: str
    priority: int
    controller: str


class Trial:
    """A scheduler whose decisions are executed at once.

    Args:
        scheduler: the scheduler, on a state whose writes the caller undoes.
        now_ns: virtual time of the beginning.
        preempts: whether pods may evict others; otherwise no PostFilter plugin runs.
        checkpoint: the function to call between cycles; it may raise to end the trial.

    Attributes:
        placed: node by key of every pod that was placed in this trial and still exists.
        messages: why pods that were tried have no node, by key.
        evictions: evicted pods, in order.
        last_decision: by key the number of the last record about a pod, if records are enabled.
    """

    def __init__(
        self, scheduler: Scheduler, now_ns: int, *, preempts: bool, checkpoint: Callable[[], None] = nothing
    ) -> None:
        self.scheduler = scheduler
        self._checkpoint = checkpoint
        self.state = scheduler.state
        self.now_ns = now_ns
        self.placed: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.evictions: list[Eviction] = []
        self.victims: dict[str, Pod] = {}
        self.last_decision: dict[str, int] = {}
        self._end_ns = now_ns + PATIENCE_NS
        self._post_filters = {name: profile.post_filter for name, profile in scheduler.profiles.items() if preempts}

    def begin_records(self, level: RecordLevel) -> None:
        """Record what follows at a level, and drop earlier records."""
        self.scheduler.records = Records(level)
        self.last_decision = {}

    # Changes.

    def put(self, item: KubernetesObject) -> None:
        """Add an object, or replace the one of its kind and key."""
        old: KubernetesObject | None
        if isinstance(item, Pod):
            old = self.scheduler.pods.get(item.key)
            if not item.spec.node_name and item.spec.scheduler_name not in self.scheduler.profiles:
                self.messages[item.key] = f'no profile for scheduler name "{item.spec.scheduler_name}"'
        elif isinstance(item, Node):
            row = self.state.nodes.row_of.get(item.metadata.name)
            old = None if row is None else self.state.nodes.nodes[row]
        else:
            old = self.state.catalog.get(type(item), item.key)
        self._carry_out(self.scheduler.handle(old, item, self.now_ns))

    def add_all(self, items: Iterable[KubernetesObject]) -> None:
        """Add objects in order; nothing is scheduled."""
        for item in items:
            self.put(item)

    def remove_pod(self, key: str) -> Pod | None:
        """Remove a pod; return it, or None if there is none of that key."""
        pod = self.scheduler.pods.get(key)
        if pod is not None:
            self.placed.pop(key, None)
            self.messages.pop(key, None)
            self._carry_out(self.scheduler.handle(pod, None, self.now_ns))
            if pod.spec.resource_claims and pod.spec.node_name:
                self._free_devices(pod)
        return pod

    def _free_devices(self, pod: Pod) -> None:
        """Remove a deleted pod from its claims' reservations; claims without other users release their devices."""
        uid = pod.metadata.uid
        for claim in list(self.state.catalog.all(ResourceClaim)):
            users = claim.status.reserved_for
            left = tuple(user for user in users if user.uid != uid or user.name != pod.metadata.name)
            if claim.metadata.namespace != pod.metadata.namespace or len(left) == len(users):
                continue
            status = replace(claim.status, reserved_for=left)
            if not left:
                status = replace(status, allocation=None, devices=())
            self.put(replace(claim, status=status))

    def remove_node(self, name: str) -> list[Pod]:
        """Remove a node and the pods on it; return these, by name."""
        row = self.state.nodes.row_of[name]
        pods = self.pods_on(name)
        for pod in pods:
            self.remove_pod(pod.key)
        self._carry_out(self.scheduler.handle(self.state.nodes.nodes[row], None, self.now_ns))
        return pods

    def pods_on(self, name: str) -> list[Pod]:
        """Return the pods on a node, by name: trials that were undone leave them in any order."""
        infos = self.state.pods_on[self.state.nodes.row_of[name]]
        return [infos[key].pod for key in sorted(infos)]

    def nodes(self) -> list[Node]:
        """Return the nodes, in the order of their rows."""
        return [node for node in self.state.nodes.nodes if node is not None]

    def put_back(self, item: KubernetesObject, old: KubernetesObject | None) -> None:
        """Undo a `put` of an object other than a pod or node: restore the older version, or remove it."""
        self._carry_out(self.scheduler.handle(item, old, self.now_ns))

    def node_of(self, key: str) -> str:
        """Return the node of a pod; "" if it has none."""
        info = self.state.pods.get(key)
        return "" if info is None else self.state.nodes.names[info.row] or ""

    # Scheduling.

    def place(self, items: Iterable[KubernetesObject]) -> str:
        """Add objects, the last of them a pod, and schedule until nothing moves; return the node of the pod, or ""."""
        key = ""
        for item in items:
            self.put(item)
            key = item.key
        self.settle()
        return self.placed.get(key, "")

    def settle(self) -> None:
        """Schedule until no pod is ready, letting virtual time pass for backoffs and permits."""
        scheduler = self.scheduler
        # The search for victims takes most of the time of a pod that fits nowhere.
        searches = bool(self._post_filters) and self._may_preempt()
        for name, profile in scheduler.profiles.items():
            profile.post_filter = self._post_filters[name] if searches else ()
        while True:
            while (report := scheduler.schedule_one(self.now_ns)) is not None:
                self._take(report)
                self._checkpoint()
            if not len(scheduler.waiting_pods) and next(iter(scheduler.queue.backing_off()), None) is None:
                return
            wakeup_ns = scheduler.next_wakeup_ns(self.now_ns)
            if wakeup_ns is None or wakeup_ns > self._end_ns:
                return
            self.now_ns = wakeup_ns
            self._carry_out(scheduler.tick(wakeup_ns))

    def _may_preempt(self) -> bool:
        """Return whether a pod without a node is more important than any other pod."""
        known = self.scheduler.pods.values()
        wanted = [pod.spec.priority or 0 for pod in known if not self.state.pods.get(pod.key)]
        if not wanted:
            return False
        lowest = min(min(wanted), min((info.priority for info in self.state.pods.values()), default=0))
        return max(wanted) > lowest

    def waiting(self) -> list[str]:
        """Return the keys of the pods in the queue, gated ones included, by name."""
        queue = self.scheduler.queue
        return sorted(queued.key for queued in chain(queue.backing_off(), queue.unschedulable()))

    def _take(self, report: CycleReport) -> None:
        key = key_of(report.pod)
        if self.scheduler.records.level:
            self.last_decision[key] = len(self.scheduler.records) - 1
        if report.outcome is not Outcome.SCHEDULED:
            self.messages[key] = report.message
        self._carry_out(report.actions)

    def _carry_out(self, actions: Iterable[Action]) -> None:
        scheduler, now_ns = self.scheduler, self.now_ns
        for action in actions:
            key = key_of(action.pod)
            pod = scheduler.pods.get(key)
            if isinstance(action, Bind):
                if pod is not None:
                    self.placed[key] = action.node_name
                    self.messages.pop(key, None)
                    bound = replace(pod, spec=replace(pod.spec, node_name=action.node_name))
                    self._carry_out(scheduler.handle(pod, bound, now_ns))
            elif isinstance(action, Update):
                self._write(action)
            elif isinstance(action, Evict):
                if pod is not None:
                    self._evict(pod, action)
            elif isinstance(action, Nominate):
                if pod is not None and pod.status.nominated_node_name != action.node_name:
                    # Another version of the pod: the same version would be treated as a duplicate update.
                    metadata = replace(pod.metadata, resource_version="")
                    status = replace(pod.status, nominated_node_name=action.node_name)
                    self._carry_out(scheduler.handle(pod, replace(pod, metadata=metadata, status=status), now_ns))
            elif isinstance(action, SetCondition):
                self.messages[key] = action.message

    def _write(self, action: Update) -> None:
        catalog, nodes = self.state.catalog, self.state.nodes
        row = nodes.row_of.get(action.node_name)
        for item in volume_writes(action.item, catalog, None if row is None else nodes.nodes[row]):
            self._carry_out(self.scheduler.handle(catalog.get(type(item), item.key), item, self.now_ns))

    def _evict(self, pod: Pod, action: Evict) -> None:
        owner = pod.metadata.controller()
        controller = f"{owner.kind}/{owner.name}" if owner is not None else ""
        preemptor, priority = key_of(action.preemptor), pod.spec.priority or 0
        self.evictions.append(Eviction(pod.key, pod.spec.node_name, preemptor, priority, controller))
        self.victims[pod.key] = pod
        self.placed.pop(pod.key, None)
        self._carry_out(self.scheduler.handle(pod, None, self.now_ns))
