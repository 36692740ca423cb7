"""Pods that wait for an event: rejected and gated ones, grouped by the plugins that rejected them, and ordered by age.

An event looks up its hints once per group, so an event that interests no group costs nothing, however many pods wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.engine.heap import PodHeap
from bayplan.engine.queued_pod import QueuedPod, Rejection


class RejectionGroup:
    """Pods with the same rejection and the same gate.

    Attributes:
        gating_plugin: the PreEnqueue plugin that gates them, or "".
        members: the pods by key, in the order in which they were added.
    """

    def __init__(self, gating_plugin: str, rejection: Rejection) -> None:
        self.gating_plugin = gating_plugin
        self.rejection = rejection
        self.members: dict[str, QueuedPod] = {}

    def add(self, queued: QueuedPod) -> None:
        """Add a pod."""
        self.members[queued.key] = queued

    def remove(self, key: str) -> None:
        """Remove a member."""
        del self.members[key]


class UnschedulablePods:
    """The unschedulable and gated pods by ``namespace/name``.

    Attributes:
        groups: all groups that ever had members.
        ages: the pods that no flush has marked, oldest first.
        overdue: pods that a flush marked and that stayed because they are gated; each flush checks them again.
        group_of: the group of each pod, by key.
    """

    def __init__(self) -> None:
        self.groups: dict[object, RejectionGroup] = {}
        self.ages = PodHeap()
        self.overdue: dict[str, QueuedPod] = {}
        self.group_of: dict[str, RejectionGroup] = {}

    def __len__(self) -> int:
        return len(self.group_of)

    def __contains__(self, key: str) -> bool:
        return key in self.group_of

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield all pods, group by group."""
        for group in self.groups.values():
            yield from group.members.values()

    def get(self, key: str) -> QueuedPod | None:
        """Return the pod ``namespace/name``, or None."""
        group = self.group_of.get(key)
        return None if group is None else group.members[key]

    def count_gated(self) -> int:
        """Return the number of gated pods."""
        return sum(len(group.members) for group in self.groups.values() if group.gating_plugin)

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or regroup one that is already present and whose rejection or gate may have changed."""
        key, group = queued.key, self.group_for(queued)
        old = self.group_of.get(key)
        if old is group:
            return
        if old is not None:
            old.remove(key)
        elif queued.flushed:
            self.overdue[key] = queued
        else:
            self.ages.push(queued, queued.timestamp_ns)
        group.add(queued)
        self.group_of[key] = group

    def group_for(self, queued: QueuedPod) -> RejectionGroup:
        """Return the group that a pod belongs to; create it if necessary."""
        group_key = (queued.gating_plugin, queued.rejection)
        group = self.groups.get(group_key)
        if group is None:
            group = self.groups[group_key] = RejectionGroup(*group_key)
        return group

    def discard(self, key: str) -> bool:
        """Remove a pod; return whether it was present."""
        group = self.group_of.pop(key, None)
        if group is None:
            return False
        group.remove(key)
        if not self.ages.discard(key):
            del self.overdue[key]
        return True

    def mark_overdue(self, before_ns: int) -> list[QueuedPod]:
        """Mark the pods with a timestamp before `before_ns` as flushed; return all marked ones, oldest mark first."""
        while (oldest := self.ages.peek()) is not None and oldest.timestamp_ns < before_ns:
            self.ages.pop()
            oldest.flushed = True
            self.overdue[oldest.key] = oldest
        return [*self.overdue.values()]

    def check_invariants(self) -> None:
        """Raise AssertionError if groups and ages contradict the pods."""
        assert len([*self]) == len(self.group_of) == len(self.ages) + len(self.overdue)
        for key, group in self.group_of.items():
            queued = group.members[key]
            assert queued.key == key
            assert (queued.gating_plugin, queued.rejection) == (group.gating_plugin, group.rejection)
            assert queued.flushed == (key in self.overdue) != (key in self.ages)
