"""Count the pods that run by priority, to know the lowest: only pods above it can preempt anybody."""

from __future__ import annotations

from bayplan.cluster.owned_pods import is_finished
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod


class PriorityCensus:
    """How many pods of each priority are on nodes and have not finished."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def take(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Take in a change of the cluster: an object before and after it."""
        if isinstance(old, Pod) or isinstance(new, Pod):
            before, after = _running_priority(old), _running_priority(new)
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
        """Return the lowest priority, or None where no pod runs."""
        return min(self._counts, default=None)


def _running_priority(item: KubernetesObject | None) -> int | None:
    """Return the priority of a pod that is on a node and has not finished, else None."""
    if isinstance(item, Pod) and item.spec.node_name and not is_finished(item):
        return item.spec.priority or 0
    return None
