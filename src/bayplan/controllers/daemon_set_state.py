"""Cached state of one DaemonSet, so that a reconcile checks only changed nodes: pods, eligibility and status by node.

With 5,000 nodes, a pod that starts on one of them must not cause a check of the other 4,999. Events of pods and nodes
mark single nodes as dirty; a reconcile checks only these nodes and adjusts the status counts by the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from bayplan.cluster.store import ChangeEvent, object_key
from bayplan.controllers.controller import RejectedWrites
from bayplan.controllers.daemon_nodes import Eligibility, NodeEligibility, target_node
from bayplan.controllers.pod_factory import PreparedTemplate
from bayplan.controllers.revisions import REVISION_LABEL, RevisionHistory
from bayplan.controllers.writer import AwaitsAnswers
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import PodTemplateSpec


class NodeTally(msgspec.Struct, frozen=True):
    """Contribution of one node to the status of a DaemonSet; each field is 0 or 1."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


_NOTHING = NodeTally()


class DaemonSetState:
    """The cached state of one DaemonSet.

    Attributes:
        history: the revisions of the pod template.
        dirty: the names of nodes to check, in the order in which they became dirty.
        refused: the names of nodes for which a creation or deletion was rejected, or a creation not tried after a
            rejection; the first is tried again next.
        postponed: the names of nodes for which a write of the rolling update was rejected; it updates them last.
        is_halfway: whether the last reconcile left dirty nodes for the next reconcile, which continues its pass.
        rejected: the rejected writes of the present pass over the dirty nodes.
        is_blocked: whether a creation was rejected in the present pass.
        again_ns: the time (ns) of the next check that the nodes of the present pass require, or None.
        pods: the keys of the set's pods, by node name (`target_node`).
        by_hash: the number of pods that are not being deleted, by revision hash.
        waiting: the names of nodes with a pod that is ready but not yet available.
        retry: the names of nodes with a failed pod that must not be deleted yet (`backoff`).
        totals: the sum of the tallies of all nodes.
        backoff: the delay (ns) before a failed pod is deleted, and the time of its last use, by node name.
        prepared: the template from which pods are created, or None before the first pod.
    """

    def __init__(self) -> None:
        self.history = RevisionHistory()
        self.dirty: dict[str, None] = {}
        self.refused: dict[str, None] = {}
        self.postponed: dict[str, None] = {}
        self.is_halfway = False
        self.rejected = RejectedWrites()
        self.is_blocked = False
        self.again_ns: int | None = None
        self.pods: dict[str, dict[str, None]] = {}
        self.by_hash: Counter[str] = Counter()
        self.waiting: dict[str, None] = {}
        self.retry: dict[str, None] = {}
        self.totals = _NOTHING
        self.backoff: dict[str, tuple[int, int]] = {}
        self.prepared: PreparedTemplate | None = None
        self._template: PodTemplateSpec | None = None
        self._eligibility: NodeEligibility | None = None
        self._verdicts: dict[str, tuple[Node, Eligibility]] = {}
        self._tallies: dict[str, NodeTally] = {}

    def follow_template(self, template: PodTemplateSpec) -> bool:
        """Store the template; return whether it has changed, in which case the caller must check every node."""
        if self._template is template:
            return False
        self._template = template
        self._eligibility = NodeEligibility(template)
        self._verdicts.clear()
        return True

    def eligibility_of(self, node: Node) -> Eligibility:
        """Return whether a pod should start on a node, and whether a running pod may stay.

        Before a template is set, return False for both.
        """
        name = node.metadata.name
        known = self._verdicts.get(name)
        if known is not None:
            before = known[0]
            if before is node or (
                before.metadata.labels == node.metadata.labels and before.spec.taints == node.spec.taints
            ):
                return known[1]
        if self._eligibility is None:
            return Eligibility(should_run=False, may_stay=False)
        verdict = self._eligibility.eligibility_of(node)
        self._verdicts[name] = (node, verdict)
        return verdict

    def follow_pod(self, event: ChangeEvent) -> None:
        """Update `pods` and `by_hash` after an event of one of the set's pods, and mark the pod's node as dirty.

        As in upstream, adopted pods do not count until they are bound to a node.
        """
        old, new = event.old, event.new
        if isinstance(old, Pod) and (name := target_node(old)):
            key = object_key(old.metadata)
            on_node = self.pods.get(name)
            if on_node is not None and (new is None or target_node(_pod(new)) != name):
                on_node.pop(key, None)
                if not on_node:
                    del self.pods[name]
            self.dirty[name] = None
            if old.metadata.deletion_timestamp is None:
                self.by_hash[old.metadata.labels.get(REVISION_LABEL, "")] -= 1
        if isinstance(new, Pod) and (name := target_node(new)):
            self.pods.setdefault(name, {})[object_key(new.metadata)] = None
            self.dirty[name] = None
            if new.metadata.deletion_timestamp is None:
                self.by_hash[new.metadata.labels.get(REVISION_LABEL, "")] += 1

    @contextmanager
    def updating(self, name: str) -> Iterator[None]:
        """Collect the rejection of a write of the rolling update, and postpone this node.

        A write that waits for webhook responses is repeated for the same node: another one would ask the webhooks again.
        """
        outcome = "rejected"
        with self.rejected:
            try:
                yield
                outcome = "succeeded"
            except AwaitsAnswers:
                outcome = "waits"
                raise
        if outcome != "waits":
            self.postponed.pop(name, None)
        if outcome == "rejected":
            self.postponed[name] = None

    def forget_node(self, name: str) -> None:
        """Drop the state of a deleted node, except its pods."""
        self._verdicts.pop(name, None)
        self.backoff.pop(name, None)
        self.waiting.pop(name, None)
        self.postponed.pop(name, None)
        self.tally(name, _NOTHING)

    def tally(self, name: str, new: NodeTally) -> None:
        """Set the contribution of a node to the status, and adjust `totals`."""
        old = self._tallies.get(name, _NOTHING)
        if old == new:
            return
        if new == _NOTHING:
            del self._tallies[name]
        else:
            self._tallies[name] = new
        totals = self.totals
        self.totals = NodeTally(
            totals.desired + new.desired - old.desired,
            totals.current + new.current - old.current,
            totals.misscheduled + new.misscheduled - old.misscheduled,
            totals.ready + new.ready - old.ready,
            totals.available + new.available - old.available,
            totals.updated + new.updated - old.updated,
        )


def _pod(item: object) -> Pod:
    assert isinstance(item, Pod)
    return item
