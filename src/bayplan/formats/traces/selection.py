"""Select tasks of a trace: a time window, a sample of jobs, and a limit. Memory grows only with the selected tasks."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.formats.traces.shapes import Shape

MAX_PODS = 2_000_000
"""Maximum number of pods of a trace without a limit. More would need over 2 GB as objects, and far more in a simulation."""

NEVER_NS = 2**63 - 1
"""A time later than any in a trace."""

NO_LABELS: Mapping[str, str] = {}


class Task(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A row of a trace: equal pods that arrive at the same time.

    Attributes:
        name: a name that is unique in the trace.
        job: the job of the pods, or "".
        shape: the requests of each pod.
        arrival_ns: the time of arrival since the start of the trace; negative if before it.
        run_time_ns: the run time of each pod; None to run until `gone_at_ns`, or forever.
        gone_at_ns: the time when the pods are deleted, even if they still wait; None for never.
        end_ns: the time when the pods left the traced cluster; None if not within the trace.
        instances: the number of instances in the row.
        count: the number of selected instances.
        labels: the labels of each pod; tasks with equal labels share them.
    """

    name: str
    shape: Shape
    arrival_ns: int
    job: str = ""
    run_time_ns: int | None = None
    gone_at_ns: int | None = None
    end_ns: int | None = None
    instances: int = 1
    count: int = 1
    labels: Mapping[str, str] = NO_LABELS


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a trace to select.

    Attributes:
        from_ns, until_ns: the window; `until_ns` is None for the end of the trace. Selected tasks have times relative
            to `from_ns`.
        running: whether to include tasks that arrived before the window and had not ended; they arrive at its start.
        sample: the fraction of jobs, drawn by a hash of name and seed, so that the order of rows does not matter.
        seed: the seed for the sample, and for drawing machines.
        limit: the maximum number of pods, from the tasks that arrive first; None for all, up to `MAX_PODS`.
    """

    from_ns: int = 0
    until_ns: int | None = None
    running: bool = True
    sample: float = 1.0
    seed: int = 0
    limit: int | None = None

    def in_window(self, arrival_ns: int, end_ns: int | None) -> bool:
        """Return whether a task with this arrival and end belongs to the window."""
        if self.until_ns is not None and arrival_ns >= self.until_ns:
            return False
        return arrival_ns >= self.from_ns or (self.running and (end_ns is None or end_ns > self.from_ns))

    def shifted(self, task: Task) -> Task:
        """Return a task of the window with times relative to its start; a task that already runs has its remaining run time."""
        if not self.from_ns and task.arrival_ns >= 0:
            return task
        arrival_ns = max(task.arrival_ns - self.from_ns, 0)
        gone_at_ns = None if task.gone_at_ns is None else task.gone_at_ns - self.from_ns
        run_time_ns = task.run_time_ns
        if task.arrival_ns < self.from_ns and run_time_ns is not None and task.end_ns is not None:
            run_time_ns = min(run_time_ns, task.end_ns - self.from_ns)
        return replace(task, arrival_ns=arrival_ns, gone_at_ns=gone_at_ns, run_time_ns=run_time_ns)


class Sample:
    """Draws a sample of jobs.

    Args:
        selection: has the fraction and the seed.
    """

    def __init__(self, selection: Selection) -> None:
        self._all = selection.sample >= 1.0
        self._below = int(selection.sample * 2**64)
        self._seed = selection.seed

    def has(self, job: str) -> bool:
        """Return whether a job is in the sample."""
        return self._all or drawn(job, self._seed) < self._below


def drawn(name: str, seed: int) -> int:
    """Return a number from 0 to 2**64 - 1 that depends only on the name and the seed."""
    key = seed.to_bytes(16, "big", signed=True)
    return int.from_bytes(blake2b(name.encode(), digest_size=8, key=key, person=b"bayplan.traces").digest(), "big")


class SelectedTasks:
    """Collects the selected tasks, at most as many as the selection's limit allows.

    Args:
        selection: selects the tasks.

    Attributes:
        pods: the number of pods so far.
        horizon_ns: tasks that arrive at this time or later can't be selected, so most rows of a long trace only need to
            be read up to their arrival (`benchmarks/bench_traces.py`: 2 to 4 times as fast).
    """

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.pods = 0
        self.horizon_ns = NEVER_NS if selection.until_ns is None else selection.until_ns
        # The first item of the heap has the latest arrival; among equal arrivals, it is the last row.
        self._heap: list[tuple[int, int, Task]] = []
        self._rows = 0

    def add(self, task: Task) -> None:
        """Add a task if it is in the window and within the limit.

        Raises:
            InputError: the selection has no limit, and there are more than `MAX_PODS` pods.
        """
        selection = self.selection
        if not selection.in_window(task.arrival_ns, task.end_ns):
            return
        self._rows += 1
        limit, heap = selection.limit, self._heap
        if limit is None:
            self.pods += task.count
            heap.append((0, -self._rows, task))
            if self.pods > MAX_PODS:
                hint = "limit: 100000, sample: 0.01 or until: 1d in a Trace file"
                raise InputError("trace", wanted=f"a selection of at most {MAX_PODS:,} pods", got="more", hint=hint)
            return
        arrival_ns = max(task.arrival_ns, selection.from_ns)
        if self.pods >= limit and arrival_ns >= -heap[0][0]:
            return
        heapq.heappush(heap, (-arrival_ns, -self._rows, task))
        self.pods += task.count
        while self.pods - heap[0][2].count >= limit:
            self.pods -= heapq.heappop(heap)[2].count
        if self.pods >= limit:
            self.horizon_ns = -heap[0][0]

    def rows(self) -> list[Task]:
        """Return the selected tasks in the order in which they were added. The last arrival is cut to the limit."""
        limit = self.selection.limit
        if limit is not None and self.pods > limit:
            arrival, row, last = self._heap[0]
            self._heap[0] = (arrival, row, replace(last, count=last.count - (self.pods - limit)))
            self.pods = limit
        return [task for _, _, task in sorted(self._heap, key=lambda entry: -entry[1])]

    def tasks(self) -> list[Task]:
        """Return the selected tasks with times relative to the start of the window."""
        return [self.selection.shifted(task) for task in self.rows()]
