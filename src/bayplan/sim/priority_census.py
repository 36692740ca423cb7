"""Count the pods that run by priority, to know the lowest: only pods above it can preempt anybody."""

from __future__ import annotations

from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ChangeEvent
from bayplan.objects.pod import Pod


class PriorityCensus:
    """How many pods of each priority are on nodes and have not finished."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def take(self, change: ChangeEvent) -> None:
        """Take in a change of the cluster."""
        self._count(change.old, -1)
        self._count(change.new, 1)

    def _count(self, item: object, difference: int) -> None:
        if isinstance(item, Pod) and item.spec.node_name and not is_finished(item):
            priority = item.spec.priority or 0
            count = self._counts.get(priority, 0) + difference
            if count:
                self._counts[priority] = count
            else:
                del self._counts[priority]

    def lowest(self) -> int | None:
        """Return the lowest priority, or None where no pod runs."""
        return min(self._counts, default=None)
