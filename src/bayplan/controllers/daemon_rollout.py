"""Selects the daemon pods that a rolling update replaces next, within maxUnavailable or maxSurge.

Without a surge, old pods that are not available are deleted immediately, and available old pods as long as fewer than
``maxUnavailable`` nodes lack an available pod. With a surge, a new pod starts alongside the old pod, which is deleted
when the new pod is available. Nodes are visited in the order of the store; upstream's order is random.

Source: pkg/controller/daemon/update.go v1.36.3 and KEP-1591.
"""

from __future__ import annotations

from bayplan.controllers.availability import is_available
from bayplan.controllers.revisions import REVISION_LABEL
from bayplan.controllers.rollout_arithmetic import scaled_value
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet


class DaemonRollout:
    """Computes one step of a rolling update: call `add_node` for every node, then `pods_to_delete` and `nodes_to_surge`.

    Args:
        item: the DaemonSet.
        hash_: the revision hash of the current template.
        desired: the number of nodes that the DaemonSet should run on.
        now_ns: the current time.
    """

    def __init__(self, item: DaemonSet, hash_: str, desired: int, now_ns: int) -> None:
        rolling = item.spec.update_strategy.rolling_update
        self.max_surge = 0
        self.max_unavailable = 1 if rolling is None else scaled_value(rolling.max_unavailable, desired, round_up=True)
        if rolling is not None:
            self.max_surge = scaled_value(rolling.max_surge, desired, round_up=True)
        if desired > 0 and self.max_unavailable == 0 and self.max_surge == 0:
            self.max_unavailable = 1
        self._min_ready_seconds = item.spec.min_ready_seconds
        self._hash = hash_
        self._desired = desired
        self._now_ns = now_ns
        self._busy = 0
        self._serving = 0
        self._due: list[Pod] = []
        self._candidates: list[Pod] = []
        self._sunset: list[Pod] = []
        self._nodes_due: list[str] = []
        self._node_candidates: list[str] = []

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
        elif self.max_surge == 0:
            self._add_replacing(new, old)
        else:
            self._add_surging(name, new, old, should_run)

    def _add_replacing(self, new: list[Pod], old: list[Pod]) -> None:
        if bool(new) == bool(old):
            self._busy += 1
        elif new:
            self._busy += not self._serves(new[0])
        elif not self._serves(old[0]):
            self._due.append(old[0])
            self._busy += 1
        elif self._busy < self.max_unavailable:
            self._candidates.append(old[0])

    def _add_surging(self, name: str, new: list[Pod], old: list[Pod], should_run: bool) -> None:
        if old or new:
            self._serving += self._serves(old[0] if old else new[0])
        if not old:
            return
        if new:
            if self._serves(new[0]):
                self._due.append(old[0])
            else:
                self._busy += 1
        elif not self._serves(old[0]):
            if should_run:
                self._nodes_due.append(name)
            else:
                self._due.append(old[0])
        elif not should_run:
            self._sunset.append(old[0])
        elif self._busy < self.max_surge:
            self._node_candidates.append(name)

    def pods_to_delete(self) -> list[Pod]:
        """Return the old pods to delete now."""
        if self.max_surge == 0:
            return self._due + self._candidates[: max(self.max_unavailable - self._busy, 0)]
        return self._due + self._sunset[: max(self._serving - self._desired, 0)]

    def nodes_to_surge(self) -> list[str]:
        """Return the nodes on which to start a new pod alongside the old pod."""
        if self.max_surge == 0:
            return []
        return self._nodes_due + self._node_candidates[: max(self.max_surge - self._busy, 0)]

    def _serves(self, pod: Pod) -> bool:
        return is_available(pod, self._min_ready_seconds, self._now_ns)
