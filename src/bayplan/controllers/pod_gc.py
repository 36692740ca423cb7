"""Pod garbage collection: pods of missing nodes, unscheduled pods that wait for finalizers, and the oldest finished pods.

A pod of a missing node, or an unscheduled pod in deletion, has no kubelet that ends it. So it is marked as failed, and the
controllers that wait for its end, such as that of Jobs, continue.

Upstream waits 40 seconds before it treats a missing node as deleted; so do servers. In a simulation a deleted node
does not come back, so its pods are deleted at once. The limit on finished pods is off by default, because reports need
them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.pod_status import with_condition
from bayplan.cluster.store import DELETED, ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodCondition

_FINISHED_PODS = ""
_CHECK_PERIOD_NS = 20 * SECOND_NS


QUARANTINE_NS = 40 * SECOND_NS
"""Time that upstream waits for a node to reappear."""


class PodGarbageCollector(Controller):
    """Reconciles nodes by name, and pods by key; see the module. The empty name is the key of all finished pods.

    Args:
        tools: see `ControllerTools`.
        quarantine_ns: the time that a node may be missing before its pods are removed.
        terminated_pod_threshold: the maximum number of finished pods (``--terminated-pod-gc-threshold``); 0 for no
            limit.
    """

    kind = Node
    watches = (Node,)
    # Upstream collects every 20 s.
    retry_delays_ns = (20 * SECOND_NS, 20 * SECOND_NS)

    def __init__(self, tools: ControllerTools, *, quarantine_ns: int = 0, terminated_pod_threshold: int = 0) -> None:
        super().__init__(tools)
        self._quarantine_ns = quarantine_ns
        self._missing_since: dict[str, int] = {}
        self._threshold = terminated_pod_threshold
        self._finished: dict[str, None] = {}
        self._next_check_ns = 0

    @property
    def watches_pods(self) -> bool:
        """Whether the number of finished pods is limited."""
        return self._threshold > 0

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the name of a deleted node; track finished pods, and return the empty name if there are too many."""
        item = event.object
        if not isinstance(item, Pod):
            return (item.metadata.name,) if event.type == DELETED else ()
        if event.type == DELETED or not is_finished(item):
            self._finished.pop(item.key, None)
            return ()
        self._finished[item.key] = None
        return (_FINISHED_PODS,) if len(self._finished) > self._threshold else ()

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Delete the pods of a missing node, or the oldest of too many finished pods, or fail an unscheduled pod."""
        if key == _FINISHED_PODS:
            return self._trim(now_ns)
        if "/" in key:
            pod = self.store.pods.get(key)
            if pod is not None and is_stranded(pod):
                self.writer.update(replace(pod, status=replace(pod.status, phase="Failed")))
            return None
        if key in self.store.nodes or not self.store.pods_on(key):
            self._missing_since.pop(key, None)
            return None
        until_ns = self._missing_since.setdefault(key, now_ns) + self._quarantine_ns
        if now_ns < until_ns:
            return until_ns
        condition = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="DeletionByPodGC",
            message="PodGC: node no longer exists",
            last_transition_time=format_time(now_ns),
        )
        pods = [pod for pod in self.store.pods_on(key) if not _is_removed(pod)]
        rejected = RejectedWrites()
        left = self.burst
        for pod in pods:
            if not left:
                return rejected.result(now_ns, now_ns)
            with rejected:
                if not is_finished(pod):
                    status = with_condition(replace(pod.status, phase="Failed"), condition)
                    pod = self.writer.update(replace(pod, status=status))
                self.writer.delete(pod, now_ns, grace_seconds=0)
                left -= 1
        return rejected.result(None, now_ns)

    def _trim(self, now_ns: int) -> ReconcileResult:
        """Delete the oldest finished pods over the threshold, checking every 20 seconds as upstream does."""
        surplus = len(self._finished) - self._threshold
        if surplus <= 0:
            return None
        if now_ns < self._next_check_ns:
            return self._next_check_ns
        pods = [self.store.pods[key] for key in self._finished if key in self.store.pods]
        rejected = RejectedWrites()
        for pod in sorted(pods, key=_removal_order)[:surplus]:
            with rejected:
                self.writer.delete(pod, now_ns, grace_seconds=0)
        if rejected.problem is None:
            self._next_check_ns = now_ns + _CHECK_PERIOD_NS
        return rejected.result(None, now_ns)


def is_stranded(pod: Pod) -> bool:
    """Return whether a pod that was never bound to a node stays in deletion only because of finalizers, and has not ended."""
    metadata = pod.metadata
    is_kept = metadata.deletion_timestamp is not None and bool(metadata.finalizers)
    return is_kept and not pod.spec.node_name and not is_finished(pod)


def _is_removed(pod: Pod) -> bool:
    """Return whether only finalizers prevent the deletion of a pod."""
    metadata = pod.metadata
    return metadata.deletion_timestamp is not None and metadata.deletion_grace_period_seconds == 0 and is_finished(pod)


def _removal_order(pod: Pod) -> tuple[bool, int, str]:
    """Return the sort key: evicted pods first, then the oldest, then by name."""
    created = pod.metadata.creation_timestamp
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return not evicted, parse_time_ns(created) if created is not None else 0, pod.metadata.name
