"""Selects the daemon pods that a rolling update replaces next, within maxUnavailable or maxSurge.

Without a surge, old pods that are not available are deleted immediately, and available old pods as long as fewer than
``maxUnavailable`` nodes lack an available pod. With a surge, a new pod starts alongside the old pod, which is deleted
when the new pod is available. Nodes are visited in the order of the store; upstream's order is random.

Source: pkg/controller/daemon/update.go v1.36.3 and KEP-1591.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from bayplan.controllers.availability import is_available
from bayplan.controllers.revisions import REVISION_LABEL
from bayplan.controllers.rollout_arithmetic import scaled_value
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet


class DaemonRollout(ABC):
    """Computes one step of a rolling update: call `add_node` for every node, then `pods_to_delete` and `nodes_to_surge`.

    Args:
        item: the DaemonSet.
        hash_: the revision hash of the current template.
        now_ns: the current time.
    """

    def __init__(self, item: DaemonSet, hash_: str, now_ns: int) -> None:
        self._min_ready_seconds = item.spec.min_ready_seconds
        self._hash = hash_
        self._now_ns = now_ns
        self._busy = 0
        self._due: list[Pod] = []

    def add_node(self, name: str, pods: list[Pod], *, should_run: bool) -> None:
        """Add a node and its pods to the computation.

        Args:
            name: the name of the node.
            pods: the set's pods on the node.
            should_run: whether a pod should run on the node.
        """
        present = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        new = [pod for pod in present if pod.metadata.labels.get(REVISION_LABEL) == self._hash]
        old = [pod for pod in present if pod.metadata.labels.get(REVISION_LABEL) != self._hash]
        if len(new) > 1 or len(old) > 1:
            # The ordinary reconcile deletes surplus pods; until then, the node counts as unavailable.
            self._busy += 1
        else:
            self._add(name, new[0] if new else None, old[0] if old else None, should_run=should_run)

    @abstractmethod
    def _add(self, name: str, new: Pod | None, old: Pod | None, *, should_run: bool) -> None:
        """Add a node with at most one new and one old pod."""

    @abstractmethod
    def pods_to_delete(self) -> list[Pod]:
        """Return the old pods to delete now."""

    def nodes_to_surge(self) -> list[str]:
        """Return the nodes on which to start a new pod alongside the old pod."""
        return []

    def _serves(self, pod: Pod) -> bool:
        return is_available(pod, self._min_ready_seconds, self._now_ns)


class _Replacing(DaemonRollout):
    """A rolling update without a surge: old pods are deleted first."""

    def __init__(self, item: DaemonSet, hash_: str, now_ns: int, max_unavailable: int) -> None:
        super().__init__(item, hash_, now_ns)
        self._max_unavailable = max_unavailable
        self._candidates: list[Pod] = []

    def _add(self, name: str, new: Pod | None, old: Pod | None, *, should_run: bool) -> None:
        if new is not None:
            self._busy += old is not None or not self._serves(new)
        elif old is None:
            self._busy += 1
        elif not self._serves(old):
            self._due.append(old)
            self._busy += 1
        elif self._busy < self._max_unavailable:
            self._candidates.append(old)

    def pods_to_delete(self) -> list[Pod]:
        """Return the unavailable old pods, and as many of the others as may be unavailable."""
        return self._due + self._candidates[: max(self._max_unavailable - self._busy, 0)]


class _Surging(DaemonRollout):
    """A rolling update with a surge: new pods are started first."""

    def __init__(self, item: DaemonSet, hash_: str, now_ns: int, max_surge: int, desired: int) -> None:
        super().__init__(item, hash_, now_ns)
        self._max_surge = max_surge
        self._desired = desired
        self._serving = 0
        self._sunset: list[Pod] = []
        self._nodes_due: list[str] = []
        self._node_candidates: list[str] = []

    def _add(self, name: str, new: Pod | None, old: Pod | None, *, should_run: bool) -> None:
        oldest = old or new
        self._serving += oldest is not None and self._serves(oldest)
        if old is None:
            return
        if new is not None:
            if self._serves(new):
                self._due.append(old)
            else:
                self._busy += 1
        elif not self._serves(old):
            if should_run:
                self._nodes_due.append(name)
            else:
                self._due.append(old)
        elif not should_run:
            self._sunset.append(old)
        elif self._busy < self._max_surge:
            self._node_candidates.append(name)

    def pods_to_delete(self) -> list[Pod]:
        """Return the old pods that were replaced, and surplus pods on nodes where none should run."""
        return self._due + self._sunset[: max(self._serving - self._desired, 0)]

    def nodes_to_surge(self) -> list[str]:
        """Return the nodes on which to start a new pod alongside the old pod."""
        return self._nodes_due + self._node_candidates[: max(self._max_surge - self._busy, 0)]


def rollout_of(item: DaemonSet, hash_: str, desired: int, now_ns: int) -> DaemonRollout:
    """Return the computation for the update strategy of a DaemonSet; `desired`: the number of nodes to run on."""
    rolling = item.spec.update_strategy.rolling_update
    surge = 0 if rolling is None else scaled_value(rolling.max_surge, desired, round_up=True)
    if surge:
        return _Surging(item, hash_, now_ns, surge, desired)
    unavailable = 1 if rolling is None else scaled_value(rolling.max_unavailable, desired, round_up=True)
    return _Replacing(item, hash_, now_ns, 1 if desired > 0 and not unavailable else unavailable)
