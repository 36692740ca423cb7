"""Counts the running pods by priority to find the lowest priority: only pods with a higher one can preempt."""

from __future__ import annotations

from bayplan.cluster import owned_pods
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod


class PriorityCensus:
    """The number of unfinished pods on nodes, by priority."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def record(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Apply a change of the cluster: an object before and after it."""
        before = _priority_on_node(old) if isinstance(old, Pod) else None
        after = _priority_on_node(new) if isinstance(new, Pod) else None
        if before != after:
            self._count(before, -1)
            self._count(after, 1)

    def _count(self, priority: int | None, difference: int) -> None:
        if priority is None:
            return
        count = self._counts.get(priority, 0) + difference
        if count:
            self._counts[priority] = count
        else:
            del self._counts[priority]

    def lowest(self) -> int | None:
        """Return the lowest priority, or None if no pod is running."""
        return min(self._counts, default=None)


def _priority_on_node(pod: Pod) -> int | None:
    """Return the priority of an unfinished pod on a node; None for any other pod."""
    if not pod.spec.node_name or owned_pods.is_finished(pod):
        return None
    return pod.spec.priority or 0
