"""PrioritySort: orders pods by priority, then by the time at which they were queued."""

from __future__ import annotations

from bayplan.framework.plugin import QueueSortPlugin
from bayplan.objects.pod import Pod
from bayplan.objects.requests import pod_priority


class PrioritySort(QueueSortPlugin[None]):
    """Orders the active queue by priority, higher first, then by the time at which pods were queued."""

    name = "PrioritySort"

    def sort_key(self, pod: Pod, timestamp_ns: int) -> tuple[int, ...]:
        """Return (-priority, timestamp)."""
        return -pod_priority(pod), timestamp_ns
