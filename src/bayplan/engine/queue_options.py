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
            disables backoff.
        max_in_unschedulable_ns: the time after which an unschedulable pod is retried without any event.
        pop_from_backoff: the gate SchedulerPopFromBackoffQ: pods in backoff are popped when the active queue is empty.
        start_ns: the time when the scheduler started; timers are aligned to it.
        request_gates: the gates for sums of requests; they decide whether an update scales a pod down.
    """

    initial_backoff_ns: int = SECOND_NS
    max_backoff_ns: int = 10 * SECOND_NS
    max_in_unschedulable_ns: int = 300 * SECOND_NS
    pop_from_backoff: bool = True
    start_ns: int = 0
    request_gates: RequestGates = DEFAULT_GATES


DEFAULT_OPTIONS = QueueOptions()


def first_on_grid(earliest_ns: int, start_ns: int, period_ns: int) -> int:
    """Return the first instant, not before `earliest_ns`, that is a whole number of periods from `start_ns`."""
    return earliest_ns + (start_ns - earliest_ns) % period_ns
