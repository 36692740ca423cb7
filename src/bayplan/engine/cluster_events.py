"""Event handlers: apply a change of the cluster to the columns and the queue, and wake the pods that it may help.

The cases are those of kube-scheduler's event handlers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from bayplan.engine import queued_pod
from bayplan.engine.actions import Action
from bayplan.framework.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, nominated_node_changed, object_changes
from bayplan.framework.status import Code, Status
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.pod_info import counts_the_same

if TYPE_CHECKING:
    from bayplan.engine.scheduler import Scheduler

FINISHED = ("Succeeded", "Failed")
"""Phases of pods that the scheduler ignores, as if they did not exist."""


class ClusterEvents:
    """Applies changes of the cluster to a scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> list[Action]:
        """Apply one change and return the actions for the host. `old` is None for an addition, `new` for a deletion."""
        if isinstance(old, Pod) or isinstance(new, Pod):
            return self._pod(_unfinished(old), _unfinished(new), now_ns)
        if isinstance(old, Node) or isinstance(new, Node):
            self._node(old if isinstance(old, Node) else None, new if isinstance(new, Node) else None, now_ns)
        else:
            self._other(old, new, now_ns)
        return []

    # Pods.

    def _pod(self, old: Pod | None, new: Pod | None, now_ns: int) -> list[Action]:
        scheduler = self._scheduler
        if new is None:
            if old is None:
                return []
            scheduler.pods.pop(queued_pod.key_of(old), None)
            return self._delete_pod(old, now_ns)
        key = queued_pod.key_of(new)
        scheduler.pods[key] = new
        if old is not None and old.spec.node_name:
            self._update_assigned_pod(old, new, key, now_ns)
        elif new.spec.node_name:
            actions = self._add_assigned_pod(new, key, now_ns)
            if old is not None and old.spec.scheduler_name in scheduler.profiles:
                scheduler.queue.delete(old)
            return actions
        elif new.spec.scheduler_name in scheduler.profiles:
            if old is None:
                scheduler.queue.add(new, now_ns)
            else:
                return self._update_pending_pod(old, new, key, now_ns)
        return []

    def _add_assigned_pod(self, pod: Pod, key: str, now_ns: int) -> list[Action]:
        """Add a pod that now has a node: confirm it if this scheduler assumed it there, else place it on its node."""
        scheduler, state = self._scheduler, self._scheduler.state
        known = state.pods.get(key)
        row = state.nodes.row_of.get(pod.spec.node_name)
        if known is not None and key in scheduler.assumed:
            del scheduler.assumed[key]
            if known.row == row:
                state.replace_pod_version(known, pod)
                scheduler.queue.move_all(ASSIGNED_POD_ADD, None, pod, now_ns)
                return scheduler.bindings.succeeded(key, pod, now_ns)
        if known is not None:
            state.remove_pod(key)
        if row is not None:
            state.place(state.pod_info(pod), row)
        scheduler.queue.move_all(ASSIGNED_POD_ADD, None, pod, now_ns)
        binding = scheduler.bindings.pending.get(key)
        if binding is not None and binding.node_name == pod.spec.node_name:
            # The pod is no longer assumed, because its node was deleted while the pod was being bound.
            return scheduler.bindings.succeeded(key, pod, now_ns)
        return []

    def _update_assigned_pod(self, old: Pod, new: Pod, key: str, now_ns: int) -> None:
        state = self._scheduler.state
        if key in state.pods:
            if counts_the_same(old, new):
                state.replace_pod_version(state.pods[key], new)
            else:
                state.update_pod(new)
        self._move_all(old, new, now_ns)

    def _update_pending_pod(self, old: Pod, new: Pod, key: str, now_ns: int) -> list[Action]:
        scheduler = self._scheduler
        if old.metadata.resource_version and old.metadata.resource_version == new.metadata.resource_version:
            return []
        if key in scheduler.assumed:
            if new.metadata.deletion_timestamp is not None and old.metadata.deletion_timestamp is None:
                return self._delete_assumed_pod(new, now_ns)
            return []
        scheduler.queue.update(old, new, now_ns)
        if nominated_node_changed(old, new):
            self._nomination_ended(old, now_ns)
        return []

    def _delete_pod(self, pod: Pod, now_ns: int) -> list[Action]:
        scheduler, key = self._scheduler, queued_pod.key_of(pod)
        if pod.spec.node_name:
            scheduler.assumed.pop(key, None)
            scheduler.bindings.pending.pop(key, None)
            if key in scheduler.state.pods:
                scheduler.state.remove_pod(key)
            scheduler.queue.move_all(ASSIGNED_POD_DELETE, pod, None, now_ns)
            return []
        if pod.spec.scheduler_name not in scheduler.profiles:
            return []
        scheduler.queue.delete(pod)
        if key in scheduler.assumed or scheduler.waiting_pods.get(key) is not None:
            return self._delete_assumed_pod(pod, now_ns)
        self._nomination_ended(pod, now_ns)
        return []

    def _delete_assumed_pod(self, pod: Pod, now_ns: int) -> list[Action]:
        """Free the node of a pod that is not bound yet, or reject the pod if it waits at Permit."""
        scheduler, key = self._scheduler, queued_pod.key_of(pod)
        known, waiting = scheduler.state.pods.get(key), scheduler.waiting_pods.get(key)
        name = waiting.node_name if waiting is not None else None
        if known is not None:
            name = scheduler.state.nodes.names[known.row]
        if waiting is None:
            scheduler.forget(key)
        left = structs.replace(pod, spec=structs.replace(pod.spec, node_name=name or ""))
        scheduler.queue.move_all(ASSIGNED_POD_DELETE, left, None, now_ns)
        return list(scheduler.reject_waiting_pod(key, Status(Code.UNSCHEDULABLE, ("removed",)), now_ns))

    # Nodes and the rest.

    def _node(self, old: Node | None, new: Node | None, now_ns: int) -> None:
        scheduler, state = self._scheduler, self._scheduler.state
        if new is None:
            assert old is not None
            name = old.metadata.name
            if name in state.nodes.row_of:
                for key in list(state.pods_on[state.nodes.row_of[name]]):
                    scheduler.assumed.pop(key, None)
                state.remove_node(name)
        else:
            if new.metadata.name not in state.nodes.row_of:
                old = None
            state.add_node(new)
            if old is None:
                self._place_waiting_for(new)
        self._move_all(old, new, now_ns)

    def _nomination_ended(self, pod: Pod, now_ns: int) -> None:
        """Wake the pods that the end of a pending pod's nomination may help. The pod may have none."""
        self._move_all(pod, None, now_ns)

    def _move_all(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> None:
        """Wake the pods that a change may help."""
        for change in object_changes(old, new, gates=self._scheduler.state.request_gates):
            pre_check = None if change.max_priority is None else partial(_has_priority_up_to, change.max_priority)
            self._scheduler.queue.move_all(change.event, change.old, change.new, now_ns, pre_check)

    def _place_waiting_for(self, node: Node) -> None:
        """Add the pods that were bound to this node before the node was known."""
        state, name = self._scheduler.state, node.metadata.name
        if len(state.pods) + len(self._scheduler.queue) == len(self._scheduler.pods):
            return
        row = state.nodes.row_of[name]
        for key, pod in self._scheduler.pods.items():
            if pod.spec.node_name == name and key not in state.pods:
                state.place(state.pod_info(pod), row)

    def _other(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> None:
        catalog = self._scheduler.state.catalog
        if new is not None:
            catalog.put(new.key, new)
        elif old is not None:
            catalog.remove(type(old), old.key)
        self._move_all(old, new, now_ns)


def _has_priority_up_to(highest: int, pod: Pod) -> bool:
    return (pod.spec.priority or 0) <= highest


def _unfinished(item: KubernetesObject | None) -> Pod | None:
    """Return a pod that is not finished; None for anything else."""
    if not isinstance(item, Pod):
        return None
    # The .pxd declares the type of `pod`, so that its fields are read directly.
    pod = item
    return None if pod.status.phase in FINISHED else pod
