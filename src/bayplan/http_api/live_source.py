"""A running server as a source of explanations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from bayplan.analysis.free_amounts import bound_at_once, was_on_node
from bayplan.analysis.pending import waiting_message
from bayplan.analysis.verdict import unattended_text
from bayplan.analysis.volume_places import NoObjects
from bayplan.analysis.waits import WAITING
from bayplan.base.errors import EngineBusy
from bayplan.engine.decision import Decision, Record
from bayplan.engine.records import RecordLevel
from bayplan.framework.configuration.plugin_arguments import NodeAffinityArgs
from bayplan.http_api.node_table import NodeColumns
from bayplan.http_api.pod_table import PodColumns, PodTable
from bayplan.http_api.server_context import Decisions, ServerContext
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.node import Node
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.requests import Amounts
from bayplan.sim.result import PodFate, PodTimeline, SimulatedEvent
from bayplan.state.arrays import Index, Ints
from bayplan.state.resource_table import PODS

MESSAGE_SECONDS = 0.05
"""Maximum time to wait for the engine to return a gate's message. After that, the message of the pod's condition is used."""


class SummaryRecords:
    """The summary records in memory, by decision number.

    Args:
        decisions: all decisions.
    """

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    def __len__(self) -> int:
        return len(self._decisions)

    def __getitem__(self, number: int) -> Record:
        return self._decisions[number]

    def __iter__(self) -> Iterator[Record]:
        for number in range(self._decisions.oldest, len(self._decisions)):
            try:
                yield self._decisions[number]
            except LookupError:
                continue


class LiveSource:
    """A running server at one moment, as a `bayplan.analysis.run_source.RunSource`. Create on the event loop, use on any thread.

    Args:
        server: the server.
        start_ns: when the server started, by its clock.
        table: the pods, including deleted ones that are still remembered.
        pods, nodes: frozen copies.
        events: the events about the pod to explain.
        catalog: a lookup of the pod's claims and their volumes.

    Attributes:
        catalog: the argument of this name.
    """

    def __init__(
        self,
        server: ServerContext,
        start_ns: int,
        table: PodTable,
        pods: PodColumns,
        nodes: NodeColumns,
        events: Sequence[SimulatedEvent] = (),
        catalog: ObjectLookup | None = None,
    ) -> None:
        self._server = server
        self.catalog: ObjectLookup = catalog or NoObjects()
        self._start_ns = start_ns
        self._end_ns = server.clock.now_ns()
        self._table = table
        self._pods, self._nodes, self._events = pods, nodes, events
        self._deleted = [life for lives in table.deleted.values() for life in lives]
        self._attended = frozenset(profile.scheduler_name for profile in server.setup.configuration.profiles)

    @property
    def level(self) -> RecordLevel:
        """Return the record level of the server."""
        return self._server.decisions.level

    @property
    def start_ns(self) -> int:
        """Return the time at which the server started, by its clock."""
        return self._start_ns

    @property
    def end_ns(self) -> int:
        """Return the time at which this source was created, by the server's clock."""
        return self._end_ns

    @cached_property
    def records(self) -> SummaryRecords:
        """Return the summary records in memory."""
        return SummaryRecords(self._server.decisions)

    @cached_property
    def pods(self) -> Sequence[PodTimeline]:
        """Return the timelines of all pods, with those of deleted pods first."""
        return [*self._deleted, *(life for life in self._pods.lives if life is not None)]

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """Return the nodes by name."""
        pairs = zip(self._nodes.names, self._nodes.nodes, strict=True)
        return {name: node for name, node in pairs if node is not None}

    @property
    def events(self) -> Sequence[SimulatedEvent]:
        """Return the events of the pod for which the source was created."""
        return self._events

    def added_affinity_of(self, scheduler_name: str) -> NodeSelector | None:
        """Return the required node affinity that a profile adds to all pods, or None."""
        for profile in self._server.setup.configuration.profiles:
            arguments = profile.plugin_arguments.get("NodeAffinity")
            if profile.scheduler_name == scheduler_name and isinstance(arguments, NodeAffinityArgs):
                added = arguments.added_affinity
                return None if added is None else added.required_during_scheduling_ignored_during_execution
        return None

    def records_of(self, key: str) -> list[tuple[int, Record]]:
        """Return the summary records of all pods that had this key, each with its number."""
        decisions = self._server.decisions
        found = []
        for number in decisions.numbers_of(key):
            try:
                found.append((number, decisions[number]))
            except LookupError:
                continue
        return found

    def decision(self, number: int) -> Decision:
        """Return the full record of a cycle."""
        return self._server.decisions.decision(number)

    def message_of(self, pod: PodTimeline) -> str:
        """Return why a waiting pod has no node, or else the message of its last failed attempt."""
        if pod.fate is PodFate.UNATTENDED:
            return pod.message or unattended_text(pod.scheduler_name)
        if pod.fate is PodFate.GATED:
            try:
                return self._server.engine.call(lambda scheduler: waiting_message(pod, scheduler), MESSAGE_SECONDS)
            except EngineBusy:
                return pod.message
        if pod.fate in WAITING:
            return pod.message or "not tried yet"
        return pod.message

    def requests_of(self, pod: PodTimeline) -> Amounts:
        """Return a pod's requests."""
        return self._table.requests_of(pod.pod)

    def requested_before(self, number: int, nodes: Collection[str]) -> dict[str, Amounts]:
        """Return the amounts requested just before a decision, by node and resource. Uses columns, as there may be 50,000 pods."""
        time_ns, at_once = self.records[number].time_ns, bound_at_once(self, number)
        pods = self._pods
        there = pods.used & (pods.bound_ns <= time_ns) & (pods.ended_ns > time_ns)
        # Of the pods bound at the time of the decision, only those decided earlier were on their nodes.
        unsure = np.flatnonzero(there & (pods.bound_ns == time_ns) & (pods.imported == 0))
        there[[row for row in unsure.tolist() if pods.keys[row] not in at_once]] = False
        rows = np.flatnonzero(there)
        totals = self._totals(rows)
        codes = {name: code for code, name in enumerate(pods.nodes) if name in nodes}
        found = {
            name: {resource: int(sums[code]) for resource, sums in totals.items() if sums[code]}
            for name, code in codes.items()
        }
        for life in self._deleted:
            if life.node in nodes and was_on_node(life, time_ns, at_once):
                amounts = found.setdefault(life.node, {})
                for resource, amount in {**self.requests_of(life), PODS: 1}.items():
                    if amount:
                        amounts[resource] = amounts.get(resource, 0) + amount
        return found

    def _totals(self, rows: Index) -> dict[str, Ints]:
        """Return, by resource, the amounts that the pods in these rows request on each node, indexed by the node's code."""
        pods = self._pods
        shapes, codes = pods.shapes, pods.node[rows]
        shape, count = pods.shape[rows], len(pods.nodes)
        totals = {PODS: np.bincount(codes, minlength=count)}
        for resource in sorted({name for used in np.unique(shape).tolist() for name in shapes[used]}):
            amounts = np.array([each.get(resource, 0) for each in shapes], dtype=np.float64)
            # Sums of floats are exact up to 2^53, which no node's resource exceeds.
            sums = np.bincount(codes, weights=amounts[shape], minlength=count)
            totals[resource] = sums.astype(np.int64)
        return totals

    def timelines_of(self, key: str) -> list[PodTimeline]:
        """Return the timelines of all remembered pods with this key, the newest last."""
        return [self._with_attendance(life) for life in self._table.timelines_of(key)]

    def _with_attendance(self, life: PodTimeline) -> PodTimeline:
        """Return the timeline, with the fate UNATTENDED if no scheduler handles the waiting pod."""
        attended = life.scheduler_name in self._attended or self._has_annotated_attempt(life.key)
        return life if life.fate is not PodFate.PENDING or attended else replace(life, fate=PodFate.UNATTENDED)

    def _has_annotated_attempt(self, key: str) -> bool:
        """Return whether a pod's last attempt was another scheduler's."""
        numbers = self._server.decisions.numbers_of(key)
        return bool(numbers) and self._server.decisions.is_annotated(numbers[-1])
