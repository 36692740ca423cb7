"""Settings of the scheduling queue, and the grid of its timers."""

from __future__ import annotations

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.objects.requests import DEFAULT_GATES, RequestGates

FLUSH_UNSCHEDULABLE_PERIOD_NS = 30 * SECOND_NS


class QueueOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the queue.

    Attributes:
        initial_backoff_ns, max_backoff_ns: ``podInitialBackoffSeconds`` and ``podMaxBackoffSeconds``. A maximum of 0
            switches backoff off.
        max_in_unschedulable_ns: after how long an unschedulable pod is tried again without any event.
        pop_from_backoff: the gate SchedulerPopFromBackoffQ: pods that back off are popped when nothing else waits.
        start_ns: when the scheduler started, which the timers are aligned to.
        request_gates: how requests are summed up; decides whether an update scales a pod down.
    """

    initial_backoff_ns: int = SECOND_NS
    max_backoff_ns: int = 10 * SECOND_NS
    max_in_unschedulable_ns: int = 300 * SECOND_NS
    pop_from_backoff: bool = True
    start_ns: int = 0
    request_gates: RequestGates = DEFAULT_GATES


DEFAULT_OPTIONS = QueueOptions()


def first_on_grid(earliest_ns: int, start_ns: int, period_ns: int) -> int:
    """Return the first instant of the grid through `start_ns` that is not before `earliest_ns`."""
    return earliest_ns + (start_ns - earliest_ns) % period_ns
