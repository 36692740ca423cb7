"""Pods that wait for an event: rejected and gated ones, grouped by the plugins that rejected them, and ordered by age.

An event looks up its hints once per group, so an event that interests no group costs nothing, however many pods wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from bayplan.engine.queued_pod import UNSCHEDULABLE, QueuedPod, Rejection


class RejectionGroup:
    """Pods with the same rejection and the same gate, in the order in which they were added.

    `gating_plugin` is the PreEnqueue plugin that gates them, or "".
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
        overdue: pods that a flush marked and that stayed because they are gated; each flush checks them again.
        overdue_by_gate: the number of overdue pods by gate.
    """

    __slots__ = ("_ages", "_number_by_key", "_size", "groups", "overdue", "overdue_by_gate")

    def __init__(self) -> None:
        self.groups: list[RejectionGroup] = []
        self.overdue: dict[QueuedPod, None] = {}
        self.overdue_by_gate: dict[str, int] = {}
        self._number_by_key: dict[tuple[str, Rejection], int] = {}
        self._size = 0
        # A heap by timestamp. An entry counts while its pod is present, unmarked, and has the same timestamp.
        self._ages: list[tuple[int, int, QueuedPod]] = []

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield all pods, group by group."""
        for group in self.groups:
            yield from group.members

    def count_gated(self) -> int:
        """Return the number of gated pods."""
        return sum(len(group.members) for group in self.groups if group.gating_plugin)

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or regroup one that is already present and whose rejection or gate may have changed."""
        rejection = queued.rejection
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
        """Remove a pod, which must be present."""
        queued.tier &= ~UNSCHEDULABLE
        self._size -= 1
        group = self.groups[queued.group]
        del group.members[queued]
        if queued.flushed:
            del self.overdue[queued]
            self._count_overdue(group.gating_plugin, -1)
        if len(self._ages) > 2 * self._size + 64:
            self._ages = [(each.timestamp_ns, each.sequence, each) for each in self if not each.flushed]
            heapify(self._ages)

    def oldest_timestamp_ns(self) -> int | None:
        """Return the oldest timestamp of the pods that no flush has marked; None without such pods."""
        ages = self._ages
        while ages:
            timestamp_ns, _, queued = ages[0]
            if queued.tier & UNSCHEDULABLE and not queued.flushed and queued.timestamp_ns == timestamp_ns:
                return timestamp_ns
            heappop(ages)
        return None

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

    def _check_groups(self) -> None:
        for number, group in enumerate(self.groups):
            for queued in group.members:
                assert queued.tier & UNSCHEDULABLE
                assert queued.group == number
                assert (queued.gating_plugin, queued.rejection) == (group.gating_plugin, group.rejection)

    def check_invariants(self) -> None:
        """Raise AssertionError if the groups and the records contradict each other."""
        pods = [*self]
        assert len(pods) == self._size == len({id(queued) for queued in pods})
        self._check_groups()
        assert all((queued in self.overdue) == queued.flushed for queued in pods)
        unmarked = [queued.timestamp_ns for queued in pods if not queued.flushed]
        assert self.oldest_timestamp_ns() == min(unmarked, default=None)
        assert sum(self.overdue_by_gate.values()) == len(self.overdue)
        for gate, count in self.overdue_by_gate.items():
            assert count == sum(queued.gating_plugin == gate for queued in self.overdue)
