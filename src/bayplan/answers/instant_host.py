"""A host without time: it executes the scheduler's actions immediately, records their effects on pods, and can undo changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from bayplan.analysis.verdict import unattended_text
from bayplan.cluster.volume_controller import volume_writes
from bayplan.engine.actions import Action, Bind, Evict, Nominate, SetCondition, Update
from bayplan.engine.queued_pod import key_of
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.status import Code, Status
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim

Change = tuple[KubernetesObject | None, KubernetesObject | None]
"""An object before and after a change: None before an addition, and None after a deletion."""


class Eviction(Struct, frozen=True):
    """A pod that was evicted to make room.

    Attributes:
        pod: ``namespace/name`` of the victim.
        node: the node of the victim.
        preemptor: ``namespace/name`` of the preempting pod.
        priority: the priority of the victim.
        controller: the controller that recreates the victim, ``Kind/name``; "" if it has none.
    """

    pod: str
    node: str
    preemptor: str
    priority: int
    controller: str


class InstantHost:
    """Passes changes to a scheduler and executes its actions immediately: binds pods and deletes victims.

    Args:
        scheduler: the host's scheduler; no other code may pass changes to it.
        now_ns: the time; it never advances by itself.

    Attributes:
        scheduler, now_ns: the arguments of these names.
        state: the state of the scheduler.
        placed: the nodes of the existing pods that this host bound, by key.
        messages: why pods that were tried have no node, by key.
        evictions: the evictions, in order.
        victims: the last version of each evicted pod, by key.
        changes: the number of changes so far that may change decisions about other pods: all but those of pods without
            a node, unless they are nominated.
    """

    def __init__(self, scheduler: Scheduler, now_ns: int = 0) -> None:
        self.scheduler = scheduler
        self.state = scheduler.state
        self.now_ns = now_ns
        self.placed: dict[str, str] = {}
        self.messages: dict[str, str] = {}
        self.evictions: list[Eviction] = []
        self.victims: dict[str, Pod] = {}
        self.changes = 0
        self._journal: list[Change] | None = None

    # Changes.

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Pass one change to the scheduler, and execute the resulting actions."""
        if self._journal is not None:
            self._journal.append((old, new))
        if not (_has_no_node(old) and _has_no_node(new)):
            self.changes += 1
        if actions := self.scheduler.handle(old, new, self.now_ns):
            self.execute(actions)

    def put(self, item: KubernetesObject) -> None:
        """Add an object, or replace the existing one of its kind and key."""
        old: KubernetesObject | None
        if isinstance(item, Pod):
            old = self.scheduler.pods.get(item.key)
            if not item.spec.node_name and item.spec.scheduler_name not in self.scheduler.profiles:
                self.messages[item.key] = unattended_text(item.spec.scheduler_name)
        elif isinstance(item, Node):
            old = self.node(item.metadata.name)
        else:
            old = self.state.catalog.get(type(item), item.key)
        self.handle(old, item)

    def add_all(self, items: Iterable[KubernetesObject]) -> None:
        """Add objects in order, without scheduling pods."""
        for item in items:
            self.put(item)

    def remove_all(self, items: Sequence[KubernetesObject]) -> None:
        """Remove objects that were added, the last one first. If they include nodes, no other pods may be on these nodes."""
        for item in reversed(items):
            if isinstance(item, Pod):
                self.remove_pod(item.key)
            else:
                self.handle(item, None)

    def remove_pod(self, key: str) -> Pod | None:
        """Remove a pod. Return it, or None if it does not exist."""
        pod = self.scheduler.pods.get(key)
        if pod is not None:
            self.placed.pop(key, None)
            self.messages.pop(key, None)
            if self._journal is not None:
                self.scheduler.binding_failed(pod, "tried only", self.now_ns)
            self.handle(pod, None)
            if pod.spec.resource_claims:
                self._free_devices(pod)
        return pod

    def _free_devices(self, pod: Pod) -> None:
        """Remove a deleted pod from the reservations of its claims, and release the devices of claims without other users."""
        for claim in list(self.state.catalog.all(ResourceClaim)):
            users = claim.status.reserved_for
            left = tuple(user for user in users if user.uid != pod.metadata.uid or user.name != pod.metadata.name)
            if claim.metadata.namespace != pod.metadata.namespace or len(left) == len(users):
                continue
            status = replace(claim.status, reserved_for=left)
            if not left:
                status = replace(status, allocation=None, devices=())
            self.put(replace(claim, status=status))

    def remove_node(self, name: str) -> list[Pod]:
        """Remove a node and its pods. Return the pods, sorted by key."""
        pods = self.pods_on(name)
        for pod in pods:
            self.remove_pod(pod.key)
        self.handle(self.node(name), None)
        return pods

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Undo all changes of the block when it ends. Blocks may be nested.

        Within the block, bindings stay unfinished: pods count on their nodes, and plugins release their reservations
        afterwards.
        """
        scheduler, outer, now_ns = self.scheduler, self._journal, self.now_ns
        fates = dict(self.placed), dict(self.messages), list(self.evictions), dict(self.victims)
        permits = {waiting.key for waiting in scheduler.waiting_pods}
        bindings = set(scheduler.bindings.pending)
        journal: list[Change] = []
        self._journal = journal
        try:
            yield
        finally:
            self._journal = outer
            self.now_ns = now_ns
            for key in [each.key for each in scheduler.waiting_pods if each.key not in permits]:
                scheduler.reject_waiting_pod(key, Status(Code.UNSCHEDULABLE, ("tried only",)), now_ns)
            for binding in [each for key, each in scheduler.bindings.pending.items() if key not in bindings]:
                scheduler.binding_failed(binding.queued.pod, "tried only", now_ns)
            for old, new in reversed(journal):
                if isinstance(new, Pod) and not new.spec.node_name:
                    self._stop_waiting(new)
                scheduler.handle(new, old, now_ns)
            self.placed, self.messages, self.evictions, self.victims = fates

    def _stop_waiting(self, pod: Pod) -> None:
        profile = self.scheduler.profiles.get(pod.spec.scheduler_name)
        for plugin in profile.pre_enqueue if profile is not None else ():
            plugin.stop_waiting(pod)

    # The cluster.

    def nodes(self) -> list[Node]:
        """Return the nodes in row order."""
        return [node for node in self.state.nodes.nodes if node is not None]

    def node(self, name: str) -> Node | None:
        """Return a node, or None."""
        row = self.state.nodes.row_of.get(name)
        return None if row is None else self.state.nodes.nodes[row]

    def pods_on(self, name: str) -> list[Pod]:
        """Return the pods on a node, sorted by key, because undoing changes reorders them."""
        infos = self.state.pods_on[self.state.nodes.row_of[name]]
        return [infos[key].pod for key in sorted(infos)]

    def bound(self, key: str) -> Pod | None:
        """Return a pod that has a node, or None."""
        info = self.state.pods.get(key)
        return None if info is None else info.pod

    def node_of(self, key: str) -> str:
        """Return the node of a pod; "" if it has none."""
        info = self.state.pods.get(key)
        return "" if info is None else self.state.nodes.names[info.row] or ""

    def objects(self) -> list[KubernetesObject]:
        """Return all current objects: nodes and pods come last, pods with a node before pods without."""
        pods = sorted(self.scheduler.pods.values(), key=lambda pod: not pod.spec.node_name)
        return [*self.state.catalog.everything(), *self.nodes(), *pods]

    # Execute the scheduler's actions.

    def execute(self, actions: Iterable[Action]) -> None:
        """Execute the scheduler's actions."""
        for action in actions:
            key = key_of(action.pod)
            if isinstance(action, SetCondition):
                self.messages[key] = action.message
            elif isinstance(action, Update):
                # While changes can be undone, bindings stay unfinished; PostFilter writes without a binding.
                if self._journal is None or not action.node_name:
                    self._write(action)
            elif (pod := self.scheduler.pods.get(key)) is None:
                continue
            elif isinstance(action, Bind):
                self.placed[key] = action.node_name
                self.messages.pop(key, None)
                if self._journal is None:
                    self.handle(pod, replace(pod, spec=replace(pod.spec, node_name=action.node_name)))
            elif isinstance(action, Evict):
                self._evict(pod, action)
            elif isinstance(action, Nominate) and pod.status.nominated_node_name != action.node_name:
                # Clear the resource version, or the scheduler would ignore the update as a duplicate.
                metadata = replace(pod.metadata, resource_version="")
                status = replace(pod.status, nominated_node_name=action.node_name)
                self.handle(pod, replace(pod, metadata=metadata, status=status))
                self.changes += 1

    def _write(self, action: Update) -> None:
        """Write a volume or claim, and the resulting changes of the volume controller."""
        for item in volume_writes(action.item, self.state.catalog, self.node(action.node_name)):
            self.put(item)

    def _evict(self, pod: Pod, action: Evict) -> None:
        owner = pod.metadata.controller()
        controller = f"{owner.kind}/{owner.name}" if owner is not None else ""
        preemptor, priority = key_of(action.preemptor), pod.spec.priority or 0
        self.evictions.append(Eviction(pod.key, self.node_of(pod.key), preemptor, priority, controller))
        self.victims[pod.key] = pod
        self.remove_pod(pod.key)


def _has_no_node(item: KubernetesObject | None) -> bool:
    """Return whether an item is a pod without a node, or None."""
    return item is None or (isinstance(item, Pod) and not item.spec.node_name)
