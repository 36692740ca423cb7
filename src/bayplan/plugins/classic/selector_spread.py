"""SelectorSpreadPriority, ServiceSpreadingPriority and ServiceAntiAffinity: pods of one service or controller go apart.

A running pod counts where it is in the pod's namespace, is not being deleted, and matches all selectors that match the pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from bayplan.framework.plugin import Handle, NormalizePlugin, Params, PreScorePlugin, Reads
from bayplan.framework.status import Status
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Selector
from bayplan.plugins.classic.arguments import classic_arguments
from bayplan.plugins.classic.pod_owners import first_service_selector, owners_version, selectors_of
from bayplan.plugins.classic.priority import MAX_PRIORITY
from bayplan.plugins.csi_migration import BETA_REGION, BETA_ZONE
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter
from bayplan.state.label_column import LabelColumn
from bayplan.state.pod_info import PodClass
from bayplan.state.views import Rows

ZONE_WEIGHTING = 2.0 / 3.0
NO_ZONE = 0


class OwnerPods:
    """The counter of the pods that belong together with a spec's pod; found anew when services or controllers change."""

    __slots__ = ("counter", "key", "version")

    def __init__(self) -> None:
        self.version: tuple[int, ...] = ()
        self.counter: Counter | None = None
        self.key: Hashable = None


@dataclass(frozen=True, slots=True)
class SpreadSpec:
    """Namespace and labels of the pod, by which its services and controllers are found."""

    key: tuple[str, tuple[tuple[str, str], ...]]
    namespace: str = field(compare=False)
    labels: dict[str, str] = field(compare=False)
    pods: OwnerPods = field(compare=False)


class SpreadPriority(PreScorePlugin[SpreadSpec], NormalizePlugin[SpreadSpec]):
    """Base of the priorities that count the pods of a service or controller on each node: their map phase."""

    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS

    def compile(self, pod: Pod, cluster: ClusterState) -> SpreadSpec:
        """Keep namespace and labels."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        return SpreadSpec((namespace, tuple(sorted(labels.items()))), namespace, labels, OwnerPods())

    def selectors(self, spec: SpreadSpec, cluster: ClusterState) -> Sequence[Selector]:
        """Return what the pods that count must all match; without any selector none counts."""
        raise TypeError(f"{type(self).__name__} lacks selectors()")

    def pre_score(self, spec: SpreadSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Find the counter; the params tell whose pods it counts."""
        pods, version = spec.pods, owners_version(cluster.catalog)
        if pods.version != version:
            pods.version = version
            selectors = self.selectors(spec, cluster)
            pods.key = ("spread", spec.namespace, tuple(sorted(map(repr, selectors))))
            pods.counter = None
            if selectors:
                pods.counter = cluster.matching_counter(pods.key, _matches_all(spec.namespace, selectors))
        return (pods.key,)

    def score(self, spec: SpreadSpec, params: Params | None, rows: Rows) -> Ints:
        """Return how many pods count on each node."""
        counter = spec.pods.counter
        if counter is None:
            return rows.fill(0)
        counts: Ints = counter.values[rows.row_numbers()]
        return counts


def _matches_all(namespace: str, selectors: Sequence[Selector]) -> _Matcher:
    return _Matcher(namespace, tuple(selectors))


class _Matcher(msgspec.Struct, frozen=True):
    namespace: str
    selectors: tuple[Selector, ...]

    def __call__(self, pod_class: PodClass) -> bool:
        if pod_class.namespace != self.namespace or pod_class.terminating:
            return False
        return all(selector.matches(pod_class.labels) for selector in self.selectors)


class SelectorSpreadPriority(SpreadPriority):
    """Prefers nodes, and even more zones, with few pods of the same services and controllers."""

    name = "SelectorSpreadPriority"

    def selectors(self, spec: SpreadSpec, cluster: ClusterState) -> Sequence[Selector]:
        """Return those of all services and controllers."""
        return selectors_of(spec.namespace, spec.labels, cluster.catalog)

    def scale_over(self, spec: SpreadSpec, params: Params | None, raw: Ints, feasible: Bools, rows: Rows) -> Params:
        """Return the largest count of a node, and the counts of all zones; empty where no feasible node is in a zone."""
        zones = zone_codes(rows)[feasible]
        counts = raw[feasible]
        if not zones.any():
            return (int(counts.max()), b"")
        by_zone = np.bincount(zones, weights=counts).astype(np.int64)
        by_zone[NO_ZONE] = 0
        return (int(counts.max()), by_zone.tobytes())

    def normalize(self, spec: SpreadSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return 10 for the fewest: a third by node, two thirds by zone where the node is in one."""
        most, table = scale
        assert isinstance(most, int)
        assert isinstance(table, bytes)
        score = np.full(len(raw), float(MAX_PRIORITY))
        if most > 0:
            score = float(MAX_PRIORITY) * ((most - raw).astype(np.float64) / float(most))
        if table:
            by_zone = np.frombuffer(table, dtype=np.int64)
            codes = zone_codes(rows)
            # Zones of nodes that are not feasible may lie beyond the table; nobody reads their scores.
            codes = np.where(codes < len(by_zone), codes, NO_ZONE)
            most_in_zone = int(by_zone.max())
            in_zone = np.full(len(raw), float(MAX_PRIORITY))
            if most_in_zone > 0:
                in_zone = float(MAX_PRIORITY) * (
                    (most_in_zone - by_zone[codes]).astype(np.float64) / float(most_in_zone)
                )
            both = (score * (1.0 - ZONE_WEIGHTING)) + (ZONE_WEIGHTING * in_zone)
            score = np.where(codes != NO_ZONE, both, score)
        return score.astype(np.int64)


def zone_codes(rows: Rows) -> Index:
    """Return a number for the zone of each row, region and zone together; `NO_ZONE` for nodes in none."""
    region = rows.state.nodes.label_column(BETA_REGION)
    zone = rows.state.nodes.label_column(BETA_ZONE)
    regions = _without_empty(rows.label(BETA_REGION), region)
    zones = _without_empty(rows.label(BETA_ZONE), zone)
    codes: Index = (regions + 1) * (len(zone.values) + 1) + zones + 1
    return codes


def _without_empty(codes: Index, column: LabelColumn) -> Index:
    """Return codes with the empty value counted as none."""
    empty = column.index.get("")
    return codes if empty is None else np.where(codes == empty, -1, codes)


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """The older name. Upstream hands it the selectors of all services and controllers too, which makes it the same."""

    name = "ServiceSpreadingPriority"


class ServiceAntiAffinity(SpreadPriority):
    """Prefers nodes whose value of a label has few pods of the pod's first service. Argument: the label."""

    name = "ServiceAntiAffinity"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._label = classic_arguments(arguments).argument.service_anti_affinity or ""

    def selectors(self, spec: SpreadSpec, cluster: ClusterState) -> Sequence[Selector]:
        """Return that of the first service by name."""
        selector = first_service_selector(spec.namespace, spec.labels, cluster.catalog)
        return () if selector is None else (selector,)

    def scale_over(self, spec: SpreadSpec, params: Params | None, raw: Ints, feasible: Bools, rows: Rows) -> Params:
        """Return how many pods there are on feasible nodes, and how many of them at each value of the label."""
        codes, counts = rows.label(self._label)[feasible] + 1, raw[feasible]
        by_value = np.bincount(codes, weights=counts).astype(np.int64)
        return (int(counts.sum()), by_value.tobytes())

    def normalize(self, spec: SpreadSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return 10 where no pod shares the value, 0 where all do, and 0 for nodes without the label."""
        pods, table = scale
        assert isinstance(pods, int)
        assert isinstance(table, bytes)
        by_value = np.frombuffer(table, dtype=np.int64)
        codes = rows.label(self._label) + 1
        codes = np.where(codes < len(by_value), codes, 0)
        score = np.full(len(raw), float(MAX_PRIORITY))
        if pods > 0:
            score = float(MAX_PRIORITY) * ((pods - by_value[codes]).astype(np.float64) / float(pods))
        scores: Ints = np.where(codes != 0, score, 0.0).astype(np.int64)
        return scores
