"""The read models of the live server and of finished forks: the data for lists and pages, with one interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from bayplan.analysis.run_source import SimulationSource
from bayplan.cluster.owned_pods import is_finished
from bayplan.engine.assemble import request_gates
from bayplan.engine.decision import Decision, Outcome, Record
from bayplan.engine.records import RecordLevel, Records
from bayplan.framework.feature_gates import FeatureGates
from bayplan.http_api.decision_summaries import DecisionSummaries
from bayplan.http_api.node_table import NodeColumns, NodeTable
from bayplan.http_api.pod_page import PodSource
from bayplan.http_api.pod_rows import PodRows
from bayplan.http_api.pod_table import PodColumns, PodTable
from bayplan.http_api.server_context import Decisions
from bayplan.live.decision_store import LatePoints, PointResult
from bayplan.live.instrumented_queue import Origin
from bayplan.sim.result import PodTimeline, SimulationResult


class ReadModel(NamedTuple):
    """The read model of one run.

    Attributes:
        pods, nodes: pods and nodes as columns.
        decisions: the records.
        summaries, rows: create the rows of lists from decisions and pods.
        source_of: given the rows of waiting pods, returns the source for their root causes. Call on the event loop.
    """

    pods: PodColumns
    nodes: NodeColumns
    decisions: Decisions
    summaries: DecisionSummaries
    rows: PodRows
    source_of: Callable[[Sequence[int]], PodSource]


class ForkDecisions:
    """The records of a finished run as `bayplan.http_api.server_context.Decisions`, with an index by pod.

    Args:
        records: all records.
    """

    oldest = 0
    oldest_full = 0
    annotation_problems: Mapping[str, str] = MappingProxyType({})

    def __init__(self, records: Records) -> None:
        self._records = records
        self._numbers: dict[str, list[int]] = {}
        for number, record in enumerate(records):
            self._numbers.setdefault(record.pod, []).append(number)

    @property
    def level(self) -> RecordLevel:
        """Return the record level of the run."""
        return self._records.level

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, number: int) -> Record:
        return self._records[number]

    def decision(self, number: int) -> Decision:
        """Return the full record of a decision."""
        return self._records.decision(number)

    def origin(self, number: int) -> Origin | None:
        """Return None: simulations do not record origins."""
        return None

    def late_points(self, number: int) -> LatePoints | None:
        """Return None: simulations do not record these results."""
        return None

    def late_results(self, number: int) -> Sequence[PointResult]:
        """Return (): simulations do not record these results."""
        return ()

    def is_annotated(self, number: int) -> bool:
        """Return False: all decisions of a fork are its own."""
        return False

    def numbers_of(self, pod: str) -> Sequence[int]:
        """Return the numbers of the decisions about a pod, ascending."""
        return self._numbers.get(pod, ())


class ForkReadModel:
    """The read model of a finished fork. Create on a worker thread: this takes a second for 50,000 pods.

    Args:
        result: the result of the fork's run.
        feature_gates: the feature gates that it ran with.

    Attributes:
        read_model: the data for lists.
        source: the source of explanations.
    """

    def __init__(self, result: SimulationResult, feature_gates: FeatureGates) -> None:
        self.source = _ForkSource(result)
        decisions = ForkDecisions(result.records)
        pods, nodes = PodTable(request_gates(feature_gates)), NodeTable()
        lives = {life.uid: life for life in result.pods}
        store = result.cluster.store
        for node in store.nodes.values():
            nodes.put(node, result.start_ns)
        for pod in store.pods.values():
            uid = pod.metadata.uid
            life = lives.get(uid)
            arrived_ns = result.start_ns if life is None else life.arrived_ns
            pods.put(pod, "" if life is None else life.workload, arrived_ns, arrived_ns=arrived_ns)
            if pod.spec.node_name and not is_finished(pod):
                nodes.place(pod.spec.node_name, pods.requests_of(pod), 1)
        for record in result.records:
            if record.outcome is not Outcome.SKIPPED:
                pods.take_record(record)
        summaries = DecisionSummaries(decisions)
        rows = PodRows(decisions, summaries)
        self.read_model = ReadModel(pods.freeze(), nodes.freeze(), decisions, summaries, rows, lambda _: self.source)


class _ForkSource(SimulationSource):
    """A fork as a source of explanations, with the timelines indexed by pod."""

    def __init__(self, result: SimulationResult) -> None:
        super().__init__(result)
        self._lives: dict[str, list[PodTimeline]] = {}
        for life in result.pods:
            self._lives.setdefault(life.key, []).append(life)

    def timelines_of(self, key: str) -> list[PodTimeline]:
        """Return the timelines of all pods that had this key, the newest last."""
        return self._lives.get(key, [])
