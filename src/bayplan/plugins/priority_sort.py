"""PrioritySort: orders pods by priority, then by the time of queueing."""

from __future__ import annotations

from bayplan.framework.plugin import QueueSortPlugin
from bayplan.objects.pod import Pod
from bayplan.objects.requests import pod_priority


class PrioritySort(QueueSortPlugin[None]):
    """Orders the active queue by priority, then by the time of queueing."""

    name = "PrioritySort"

    def sort_key(self, pod: Pod, timestamp_ns: int) -> tuple[int, ...]:
        """Return (minus the priority, the timestamp)."""
        return -pod_priority(pod), timestamp_ns
