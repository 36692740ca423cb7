"""`RunSource`, the interface through which explanations read a run, a result directory or a running server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from bayplan.analysis.free_amounts import requested_by_time_lines
from bayplan.analysis.pending import waiting_message
from bayplan.analysis.scheduler_surroundings import added_affinity
from bayplan.analysis.waits import WAITING
from bayplan.engine.decision import Decision, Record
from bayplan.engine.records import RecordLevel
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.node import Node
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.requests import Amounts, accounted_requests
from bayplan.sim.result import PodTimeline, SimulatedEvent, SimulationResult


class RecordSequence(Protocol):
    """The summary records of cycles, in order. Indexing raises LookupError for a cycle that is no longer in memory."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __getitem__(self, number: int, /) -> Record: ...


class RunSource(Protocol):
    """The interface through which explanations read a run."""

    @property
    def level(self) -> RecordLevel:
        """The record level of the run."""
        ...

    @property
    def start_ns(self) -> int:
        """Virtual time at the start of the run."""
        ...

    @property
    def end_ns(self) -> int:
        """Virtual time at the end of the run."""
        ...

    @property
    def records(self) -> RecordSequence:
        """The summary records of all cycles, in order."""
        ...

    @property
    def pods(self) -> Sequence[PodTimeline]:
        """Timelines of all pods, in the order of arrival."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes at the end of the run, by name."""
        ...

    @property
    def events(self) -> Sequence[SimulatedEvent]:
        """The Kubernetes events about pods."""
        ...

    def records_of(self, key: str) -> Iterable[tuple[int, Record]]:
        """Return the summary records of all pods that had this key, in order, each with its number."""
        ...

    def decision(self, number: int) -> Decision:
        """Return the full record of a cycle. Raise LookupError if there is none."""
        ...

    def message_of(self, pod: PodTimeline) -> str:
        """Return the message of a pod's last failed attempt, or why it was never tried; "" if neither is known."""
        ...

    def requests_of(self, pod: PodTimeline) -> Amounts:
        """Return a pod's requests, in units of the state."""
        ...

    def requested_before(self, number: int, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the amounts requested just before a decision, by node and resource; ``pods`` is the number of pods.

        Nodes without pods may be missing.
        """
        ...


def numbered_records_of(records: RecordSequence, key: str) -> list[tuple[int, Record]]:
    """Return the records of all pods that had this key, each with its number. Scans all records; for sources without an index."""
    return [(number, record) for number, record in enumerate(records) if record.pod == key]


class SimulationSource:
    """A finished simulation as a `RunSource`.

    Args:
        result: the result of the simulation.
    """

    def __init__(self, result: SimulationResult) -> None:
        self._result = result
        self._gates = result.state.request_gates

    @property
    def level(self) -> RecordLevel:
        """Return the record level of the run."""
        return self._result.records.level

    @property
    def start_ns(self) -> int:
        """Return the virtual time at the start of the run."""
        return self._result.start_ns

    @property
    def end_ns(self) -> int:
        """Return the virtual time at the end of the run."""
        return self._result.end_ns

    @property
    def records(self) -> RecordSequence:
        """Return the summary records of all cycles."""
        return self._result.records

    @property
    def pods(self) -> Sequence[PodTimeline]:
        """Return the timelines of all pods."""
        return self._result.pods

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """Return the nodes at the end of the run, by name."""
        return {node.metadata.name: node for node in self._result.state.nodes.nodes if node is not None}

    @property
    def catalog(self) -> ObjectLookup:
        """Return the lookup of claims, volumes and other objects."""
        return self._result.state.catalog

    @property
    def events(self) -> Sequence[SimulatedEvent]:
        """Return the Kubernetes events about pods."""
        return self._result.events

    def added_affinity_of(self, scheduler_name: str) -> NodeSelector | None:
        """Return the required node affinity that a profile adds to all pods, or None."""
        profile = self._result.scheduler.profiles.get(scheduler_name)
        return None if profile is None else added_affinity(profile)

    def records_of(self, key: str) -> Iterable[tuple[int, Record]]:
        """Return the summary records of all pods that had this key, each with its number."""
        return numbered_records_of(self._result.records, key)

    def decision(self, number: int) -> Decision:
        """Return the full record of a cycle."""
        return self._result.records.decision(number)

    def message_of(self, pod: PodTimeline) -> str:
        """Return why a waiting pod has no node, or else the message of its last failed attempt."""
        return waiting_message(pod, self._result.scheduler) if pod.fate in WAITING else pod.message

    def requests_of(self, pod: PodTimeline) -> Amounts:
        """Return a pod's requests; {} if the pod is unknown."""
        return {} if pod.pod is None else accounted_requests(pod.pod, self._gates).requests

    def requested_before(self, number: int, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the amounts requested just before a decision, by node and resource."""
        return requested_by_time_lines(self, number, nodes)
