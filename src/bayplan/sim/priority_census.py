"""Counts the running pods by priority to find the lowest priority: only pods with a higher one can preempt."""

from __future__ import annotations

from bayplan.cluster.owned_pods import FINISHED_PHASES
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod


class PriorityCensus:
    """The number of unfinished pods on nodes, by priority."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def record(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Process a change in the cluster, given the object before and after it."""
        # Inlined, because it runs for every change of a pod: the pod is on a node and has not finished.
        before = after = None
        if isinstance(old, Pod) and old.spec.node_name and old.status.phase not in FINISHED_PHASES:
            before = old.spec.priority or 0
        if isinstance(new, Pod) and new.spec.node_name and new.status.phase not in FINISHED_PHASES:
            after = new.spec.priority or 0
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
