"""The pods that one controller object owns, grouped by lifecycle state, so that they need not be counted one by one.

A ReplicaSet with 10,000 pods that are bound one after the other is reconciled 10,000 times, and counting its pods each
time would take minutes. The store moves a pod between these groups as it changes, and controllers read their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bayplan.objects.pod import Pod

JOB_TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"

FINISHED_PHASES = ("Succeeded", "Failed")


class OwnedPods:
    """The pods of one owner in three groups, by key, each in the order in which pods entered it. Only the store writes to it.

    Compiled, it can be neither pickled nor copied; stores aren't, either.

    Attributes:
        active: the pods that are neither finished nor terminating.
        terminating: the pods that are being deleted and not finished.
        finished: the pods with the phase Succeeded or Failed, whether terminating or not.
        ready: the keys of the active pods whose Ready condition is true.
        uncounted: the finished or terminating pods that still have the finalizer with which a Job counts each pod once.
    """

    __slots__ = ("active", "finished", "ready", "terminating", "uncounted")

    def __init__(self) -> None:
        self.active: dict[str, Pod] = {}
        self.terminating: dict[str, Pod] = {}
        self.finished: dict[str, Pod] = {}
        self.ready: dict[str, None] = {}
        self.uncounted: dict[str, Pod] = {}

    def __len__(self) -> int:
        return len(self.active) + len(self.terminating) + len(self.finished)

    def __iter__(self) -> Iterator[Pod]:
        """Iterate over all pods: active, terminating, finished."""
        yield from self.active.values()
        yield from self.terminating.values()
        yield from self.finished.values()

    def get(self, key: str) -> Pod | None:
        """Return a pod by key from any group."""
        return self.active.get(key) or self.terminating.get(key) or self.finished.get(key)

    def put(self, key: str, pod: Pod) -> None:
        """Add a new pod, or move a changed pod to its group."""
        metadata = pod.metadata
        if pod.status.phase in FINISHED_PHASES:
            group = self.finished
        elif metadata.deletion_timestamp is not None:
            group = self.terminating
        else:
            if key not in self.active:
                self.discard(key)
            self.active[key] = pod
            if is_ready(pod):
                self.ready[key] = None
            else:
                self.ready.pop(key, None)
            return
        if key not in group:
            self.discard(key)
        group[key] = pod
        if JOB_TRACKING_FINALIZER in metadata.finalizers:
            self.uncounted[key] = pod
        else:
            self.uncounted.pop(key, None)

    def discard(self, key: str) -> None:
        """Remove a pod."""
        if self.active.pop(key, None) is not None:
            self.ready.pop(key, None)
        elif self.terminating.pop(key, None) is None:
            self.finished.pop(key, None)
        self.uncounted.pop(key, None)


def is_finished(pod: Pod) -> bool:
    """Return whether a pod is finished (phase Succeeded or Failed)."""
    return pod.status.phase in FINISHED_PHASES


def is_active(pod: Pod) -> bool:
    """Return whether a pod is neither finished nor being deleted."""
    return pod.status.phase not in FINISHED_PHASES and pod.metadata.deletion_timestamp is None


def is_ready(pod: Pod) -> bool:
    """Return whether the Ready condition of a pod is true."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def is_daemon_pod(pod: Pod) -> bool:
    """Return whether a DaemonSet controls a pod."""
    owner = pod.metadata.controller()
    return owner is not None and owner.kind == "DaemonSet"


def pods_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the unfinished pods that have a node, by node."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name and not is_finished(pod):
            found.setdefault(pod.spec.node_name, []).append(pod)
    return found


def condition_time(pod: Pod, type_: str, status: str) -> str | None:
    """Return the time at which a condition of a pod got this status; None if it has another status, or no time."""
    for condition in pod.status.conditions:
        if condition.type == type_:
            return condition.last_transition_time if condition.status == status else None
    return None
