"""A view of the cluster for this API: pods and nodes as columns, updated with every change and every decision."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import ChangeEvent, changes_owners
from bayplan.http_api.decision_timeline import DecisionTimeline
from bayplan.http_api.node_table import NodeColumns, NodeTable
from bayplan.http_api.pod_table import PodColumns, PodTable
from bayplan.http_api.server_context import ServerContext
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import RequestGates
from bayplan.sim.workloads import Workloads

CHANGES_AT_ONCE = 400
RECORDS_AT_ONCE = 2_000
"""Maximum number of changes, and of decisions or table rows, to process before other tasks on the event loop run."""

MAX_CHANGES = 5_000
"""Maximum number of node changes (added, removed, changed) that are remembered for the timeline."""


class NodeChange(NamedTuple):
    """An addition or removal of a node, or a change of its spec or allocatable resources.

    Attributes:
        at_ns: the time of the change.
        node: the node's name.
        what: ``add``, ``remove`` or ``change``.
    """

    at_ns: int
    node: str
    what: str


class PendingChange(NamedTuple):
    """A change that the tables don't contain yet.

    Attributes:
        change: the change of a pod or a node, or of the owners of another object, or its deletion.
        at_ns: the time of the change.
    """

    change: ChangeEvent
    at_ns: int


class ClusterView:
    """The pods and nodes of a running server as columns. Use on the event loop; the copies that it returns are for any thread.

    Args:
        server: the server.
        gates: the feature gates that determine a pod's requests.

    Attributes:
        pods, nodes: the tables.
        node_changes: the newest changes of nodes.
        timeline: the timeline of all decisions in memory.
        workloads: finds the workload of a pod.
    """

    def __init__(self, server: ServerContext, gates: RequestGates) -> None:
        self._server = server
        self.pods = PodTable(gates, self._profiles)
        self.nodes = NodeTable()
        self.node_changes: deque[NodeChange] = deque(maxlen=MAX_CHANGES)
        self.workloads = Workloads(server.bridge.store)
        # By pod UID: the node whose totals include the pod, and the index of the pod's requests in the table.
        self._placed: dict[str, tuple[str, int]] = {}
        # The keys of the pods whose controlling owner is not stored, by owner, and the reverse.
        self._orphans: dict[str, dict[str, None]] = {}
        self._missing_owners: dict[str, str] = {}
        self._next_record = server.decisions.oldest
        self.timeline = DecisionTimeline(self._next_record)
        self._waiting: deque[PendingChange] = deque()
        server.bridge.listen(self._listen)

    # --- changes ------------------------------------------------------------------------------------------------------

    def _profiles(self) -> frozenset[str]:
        """Return the names of the schedulers that have a profile."""
        return frozenset(profile.scheduler_name for profile in self._server.setup.configuration.profiles)

    def _listen(self, changes: Sequence[ChangeEvent]) -> None:
        """Queue changes for `catch_up`."""
        now_ns = self._server.clock.now_ns()
        self._waiting.extend(
            PendingChange(change, now_ns)
            for change in changes
            if change.kind is Pod or change.kind is Node or change.new is None or changes_owners(change.old, change.new)
        )

    def _apply_changes(self) -> None:
        waiting = self._waiting
        for _ in range(min(len(waiting), CHANGES_AT_ONCE)):
            change, at_ns = waiting.popleft()
            if change.kind is Pod:
                self._take_pod(change, at_ns)
            elif change.kind is Node:
                self._take_node(change, at_ns)
            else:
                self._take_owner(change)

    def _take_pod(self, change: ChangeEvent, now_ns: int) -> None:
        old, new = change.old, change.new
        if changes_owners(old, new):
            self._drop_orphan(change.object.key)
        if not isinstance(new, Pod):
            if isinstance(old, Pod):
                self._count_out(old.metadata.uid)
                self.pods.remove(old.key, now_ns)
            return
        if isinstance(old, Pod) and old.metadata.uid != new.metadata.uid:
            self._count_out(old.metadata.uid)
        workload, is_owner_stored = self.workloads.of(new)
        if not is_owner_stored:
            self._orphans.setdefault(workload, {})[new.key] = None
            self._missing_owners[new.key] = workload
            life = self.pods.life(new.key)
            if life is not None and life.uid == new.metadata.uid and _controller_uid(old) == _controller_uid(new):
                # The owner may have been deleted before its pods.
                workload = life.workload
        self.pods.put(new, workload, now_ns)
        self._count(new)

    def _drop_orphan(self, key: str) -> None:
        owner = self._missing_owners.pop(key, "")
        orphans = self._orphans.get(owner)
        if orphans is not None:
            del orphans[key]
            if not orphans:
                del self._orphans[owner]

    def _count(self, pod: Pod) -> None:
        """Move a pod's requests in the totals from its previous node to its current one; a finished pod counts nowhere."""
        uid, node = pod.metadata.uid, pod.spec.node_name
        if not node or is_finished(pod):
            self._count_out(uid)
            return
        shape = self.pods.shape_of(pod)
        if self._placed.get(uid) != (node, shape):
            self._count_out(uid)
            self._placed[uid] = (node, shape)
            self.nodes.place(node, self.pods.shapes[shape], 1)

    def _count_out(self, uid: str) -> None:
        placed = self._placed.pop(uid, None)
        if placed is not None:
            node, shape = placed
            self.nodes.place(node, self.pods.shapes[shape], -1)

    def _take_owner(self, change: ChangeEvent) -> None:
        """Correct the workloads of the pods that an object controls."""
        item = change.object
        if change.new is None:
            self.workloads.forget(item)
            return
        workload, pods = self.workloads.update(item), self._server.bridge.store.pods
        found = [pod.key for pod in self._server.bridge.store.owned_pods(item.metadata.uid)]
        for key in self._orphans.pop(f"{type(item).__name__} {item.key}", ()):
            del self._missing_owners[key]
            found.append(key)
        for pod in (pods[key] for key in found if key in pods):
            self.pods.set_workload(pod, workload)

    def _take_node(self, change: ChangeEvent, now_ns: int) -> None:
        old, new = change.old, change.new
        if isinstance(new, Node):
            self.nodes.put(new, now_ns)
            if not isinstance(old, Node):
                self.node_changes.append(NodeChange(now_ns, new.metadata.name, "add"))
            elif old.spec != new.spec or old.status.allocatable != new.status.allocatable:
                self.node_changes.append(NodeChange(now_ns, new.metadata.name, "change"))
        elif isinstance(old, Node):
            self.nodes.remove(old.metadata.name)
            self.node_changes.append(NodeChange(now_ns, old.metadata.name, "remove"))

    # --- decisions ----------------------------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Process the changes and decisions since the last call, in slices between which other tasks can run."""
        while self._waiting:
            self._apply_changes()
            if self._waiting:
                await asyncio.sleep(0)
        end = len(self._server.decisions)
        while self._next_record < end:
            self._take_records(min(end, self._next_record + RECORDS_AT_ONCE))
            if self._next_record < end:
                await asyncio.sleep(0)

    def _take_records(self, end: int) -> None:
        decisions = self._server.decisions
        first = max(self._next_record, decisions.oldest)
        # Advance first, because two requests may catch up concurrently.
        self._next_record = max(end, first)
        self.timeline.forget(decisions.oldest)
        for number in range(first, end):
            try:
                record = decisions[number]
            except LookupError:
                continue
            self.timeline.add(number, record)
            self.pods.take_record(record)

    # --- for readers on other threads ---------------------------------------------------------------------------------

    async def pod_columns(self) -> PodColumns:
        """Return a frozen copy of the pods."""
        await self.catch_up()
        for _ in range(self.pods.changed // RECORDS_AT_ONCE):
            self.pods.fill(RECORDS_AT_ONCE)
            await asyncio.sleep(0)
        return self.pods.freeze()

    async def node_columns(self) -> NodeColumns:
        """Return a frozen copy of the nodes."""
        await self.catch_up()
        return self.nodes.freeze()


def _controller_uid(item: KubernetesObject | None) -> str:
    controller = None if item is None else item.metadata.controller()
    return "" if controller is None else controller.uid
