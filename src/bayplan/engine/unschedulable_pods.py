"""Pods that wait for an event: rejected ones and gated ones, grouped by who rejected them, and ordered by age.

An event asks hints once for each group instead of walking all pods, so that an event that interests no waiting plugin
costs nothing, however many pods wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from bayplan.engine.hint_index import Rejection
from bayplan.engine.queued_pod import UNSCHEDULABLE, QueuedPod


class RejectionGroup:
    """Pods with one rejection and one gate, in the order in which they came.

    Attributes:
        gating_plugin: the gate that holds them, or "".
        rejection: who rejected them.
        members: the pods; the values mean nothing.
    """

    __slots__ = ("gating_plugin", "members", "rejection")

    def __init__(self, gating_plugin: str, rejection: Rejection) -> None:
        self.gating_plugin = gating_plugin
        self.rejection = rejection
        self.members: dict[QueuedPod, None] = {}


class UnschedulablePods:
    """The pods whose `tier` has the bit UNSCHEDULABLE.

    Attributes:
        groups: all groups that ever had members.
        overdue: pods that a flush marked and that stayed, because they are gated; each flush looks at them again.
        overdue_by_gate: how many of these each gate holds.
    """

    __slots__ = ("_ages", "_number_by_key", "_size", "groups", "overdue", "overdue_by_gate")

    def __init__(self) -> None:
        self.groups: list[RejectionGroup] = []
        self.overdue: dict[QueuedPod, None] = {}
        self.overdue_by_gate: dict[str, int] = {}
        self._number_by_key: dict[tuple[str, Rejection], int] = {}
        self._size = 0
        # (timestamp, sequence, pod) as a heap; an entry counts while its pod is here, unflushed and of that timestamp.
        self._ages: list[tuple[int, int, QueuedPod]] = []

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield all pods, group by group."""
        for group in self.groups:
            yield from group.members

    def count_gated(self) -> int:
        """Return how many of the pods are gated."""
        return sum(len(group.members) for group in self.groups if group.gating_plugin)

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or regroup one that is here already and whose rejection or gate may have changed."""
        rejection = (queued.pod.spec.scheduler_name, queued.unschedulable_plugins, queued.pending_plugins)
        group_key = (queued.gating_plugin, rejection)
        number = self._number_by_key.get(group_key)
        if number is None:
            number = self._number_by_key[group_key] = len(self.groups)
            self.groups.append(RejectionGroup(queued.gating_plugin, rejection))
        if queued.tier & UNSCHEDULABLE:
            if queued.group == number:
                return
            old = self.groups[queued.group]
            del old.members[queued]
            if queued.flushed:
                self._count_overdue(old.gating_plugin, -1)
        else:
            queued.tier |= UNSCHEDULABLE
            self._size += 1
            if queued.flushed:
                self.overdue[queued] = None
            else:
                heappush(self._ages, (queued.timestamp_ns, queued.sequence, queued))
        if queued.flushed:
            self._count_overdue(queued.gating_plugin, 1)
        queued.group = number
        self.groups[number].members[queued] = None

    def remove(self, queued: QueuedPod) -> None:
        """Take out a pod that is here."""
        queued.tier &= ~UNSCHEDULABLE
        self._size -= 1
        group = self.groups[queued.group]
        del group.members[queued]
        if queued.flushed:
            del self.overdue[queued]
            self._count_overdue(group.gating_plugin, -1)
        if len(self._ages) > 2 * self._size + 64:
            self._ages = [entry for entry in self._ages if self._counts(entry)]
            heapify(self._ages)

    def oldest_timestamp_ns(self) -> int | None:
        """Return the oldest timestamp of the pods that no flush has marked; None without such pods."""
        ages = self._ages
        while ages and not self._counts(ages[0]):
            heappop(ages)
        return ages[0][0] if ages else None

    def mark_overdue(self, before_ns: int) -> list[QueuedPod]:
        """Mark the pods with a timestamp before `before_ns` as flushed; return all marked ones, oldest mark first."""
        while (oldest := self.oldest_timestamp_ns()) is not None and oldest < before_ns:
            queued = heappop(self._ages)[2]
            queued.flushed = True
            self.overdue[queued] = None
            self._count_overdue(self.groups[queued.group].gating_plugin, 1)
        return [*self.overdue]

    def _count_overdue(self, gating_plugin: str, difference: int) -> None:
        count = self.overdue_by_gate.pop(gating_plugin, 0) + difference
        if count:
            self.overdue_by_gate[gating_plugin] = count

    @staticmethod
    def _counts(entry: tuple[int, int, QueuedPod]) -> bool:
        timestamp_ns, _, queued = entry
        return bool(queued.tier & UNSCHEDULABLE) and not queued.flushed and queued.timestamp_ns == timestamp_ns

    def check_invariants(self) -> None:
        """Raise AssertionError where the groups and the records contradict each other."""
        pods = [*self]
        assert len(pods) == self._size == len({id(queued) for queued in pods})
        for number, group in enumerate(self.groups):
            for queued in group.members:
                assert queued.tier & UNSCHEDULABLE
                assert queued.group == number
                assert queued.gating_plugin == group.gating_plugin
                rejection = (queued.pod.spec.scheduler_name, queued.unschedulable_plugins, queued.pending_plugins)
                assert rejection == group.rejection
                assert (queued in self.overdue) == queued.flushed
        unmarked = [queued.timestamp_ns for queued in pods if not queued.flushed]
        assert self.oldest_timestamp_ns() == min(unmarked, default=None)
        assert sum(self.overdue_by_gate.values()) == len(self.overdue)
        for gate, count in self.overdue_by_gate.items():
            assert count == sum(queued.gating_plugin == gate for queued in self.overdue)
