"""The sources of explanations: a finished run, a result directory, or a running server, with one interface."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from bayplan.analysis.free_amounts import requested_by_time_lines
from bayplan.analysis.pending import waiting_message
from bayplan.analysis.scheduler_surroundings import added_affinity
from bayplan.analysis.volume_places import Lookup
from bayplan.analysis.waits import WAITING
from bayplan.engine.decision import Decision, Record
from bayplan.engine.records import RecordLevel
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.node import Node
from bayplan.objects.requests import Amounts, accounted_requests
from bayplan.sim.result import PodTimeline, SimulatedEvent, SimulationResult


class RecordSequence(Protocol):
    """Summaries of cycles, in order. Raises LookupError for a cycle that is no longer in memory."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Record]: ...
    def __getitem__(self, number: int, /) -> Record: ...


class RunSource(Protocol):
    """The interface through which explanations read a run."""

    @property
    def level(self) -> RecordLevel:
        """The record level."""
        ...

    @property
    def start_ns(self) -> int:
        """Virtual time at the beginning."""
        ...

    @property
    def end_ns(self) -> int:
        """Virtual time at the end."""
        ...

    @property
    def records(self) -> RecordSequence:
        """Summaries of all cycles, in order."""
        ...

    @property
    def pods(self) -> Sequence[PodTimeline]:
        """Timelines of all pods, in the order of arrival."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes at the end."""
        ...

    @property
    def events(self) -> Sequence[SimulatedEvent]:
        """Kubernetes events about pods."""
        ...

    def records_of(self, key: str) -> Iterable[tuple[int, Record]]:
        """Return the summaries of the cycles of all pods that had a key, in order, with their numbers."""
        ...

    def decision(self, number: int) -> Decision:
        """Return a full record as arrays; LookupError if there is none."""
        ...

    def message_of(self, pod: PodTimeline) -> str:
        """Return the message of a pod's last failed attempt, or why it was never tried; "" if neither is known."""
        ...

    def requests_of(self, pod: PodTimeline) -> Amounts:
        """Return a pod's requests, in units of the state."""
        ...

    def requested_before(self, number: int, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the amounts requested on nodes just before a decision, and the number of ``pods``. Empty nodes may be missing."""
        ...


def numbered_records_of(records: RecordSequence, key: str) -> list[tuple[int, Record]]:
    """Return the records of a key with their numbers by scanning all records, for sources without an index."""
    return [(number, record) for number, record in enumerate(records) if record.pod == key]


class SimulationSource:
    """A finished simulation as a source.

    Args:
        result: its outcome.
    """

    def __init__(self, result: SimulationResult) -> None:
        self._result = result
        self._gates = result.state.request_gates

    @property
    def level(self) -> RecordLevel:
        """See `RunSource`."""
        return self._result.records.level

    @property
    def start_ns(self) -> int:
        """See `RunSource`."""
        return self._result.start_ns

    @property
    def end_ns(self) -> int:
        """See `RunSource`."""
        return self._result.end_ns

    @property
    def records(self) -> RecordSequence:
        """See `RunSource`."""
        return self._result.records

    @property
    def pods(self) -> Sequence[PodTimeline]:
        """See `RunSource`."""
        return self._result.pods

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """See `RunSource`."""
        return {node.metadata.name: node for node in self._result.state.nodes.nodes if node is not None}

    @property
    def catalog(self) -> Lookup:
        """See `CatalogSource`."""
        return self._result.state.catalog

    @property
    def events(self) -> Sequence[SimulatedEvent]:
        """See `RunSource`."""
        return self._result.events

    def added_affinity_of(self, scheduler_name: str) -> NodeSelector | None:
        """See `bayplan.analysis.surroundings.ConfiguredSource`."""
        profile = self._result.scheduler.profiles.get(scheduler_name)
        return None if profile is None else added_affinity(profile)

    def records_of(self, key: str) -> Iterable[tuple[int, Record]]:
        """See `RunSource`."""
        return numbered_records_of(self._result.records, key)

    def decision(self, number: int) -> Decision:
        """See `RunSource`."""
        return self._result.records.decision(number)

    def message_of(self, pod: PodTimeline) -> str:
        """See `RunSource`."""
        return waiting_message(pod, self._result.scheduler) if pod.fate in WAITING else pod.message

    def requests_of(self, pod: PodTimeline) -> Amounts:
        """See `RunSource`."""
        return {} if pod.pod is None else accounted_requests(pod.pod, self._gates).requests

    def requested_before(self, number: int, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """See `RunSource`."""
        return requested_by_time_lines(self, number, nodes)
