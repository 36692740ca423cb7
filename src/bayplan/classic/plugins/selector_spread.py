"""SelectorSpreadPriority, ServiceSpreadingPriority, ServiceAntiAffinity: spread the pods of a service or controller.

A running pod counts if it is in the pod's namespace, is not being deleted, and matches all selectors that match the
pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.pod_owners import first_service_selector, owners_version, selectors_of
from bayplan.classic.plugins.priority import MAX_PRIORITY
from bayplan.framework.plugin import Handle, NormalizePlugin, PreScorePlugin, Reads
from bayplan.framework.rule import Params, Scale, ScoreRule
from bayplan.framework.status import Status
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Selector
from bayplan.plugins.csi_migration import BETA_REGION, BETA_ZONE
from bayplan.state.arrays import Bools, Flags, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.counters import Counter
from bayplan.state.label_column import LabelColumn
from bayplan.state.node_table import NodeTable
from bayplan.state.pod_info import PodClass

ZONE_WEIGHTING = 2.0 / 3.0
NO_ZONE = 0
_MOST = float(MAX_PRIORITY)
_ZONE_WEIGHTING = ZONE_WEIGHTING


class OwnerPods:
    """The counter of the pods that count for a spec's pod; replaced when services or controllers change."""

    __slots__ = ("counter", "key", "version")

    def __init__(self) -> None:
        self.version: tuple[int, ...] = ()
        self.counter: Counter | None = None
        self.key: Hashable = None


@dataclass(frozen=True, slots=True)
class SpreadSpec:
    """The namespace and labels of the pod, which determine its services and controllers."""

    key: tuple[str, tuple[tuple[str, str], ...]]
    namespace: str = field(compare=False)
    labels: dict[str, str] = field(compare=False)
    pods: OwnerPods = field(compare=False)


class SpreadPriority(PreScorePlugin[SpreadSpec], NormalizePlugin[SpreadSpec]):
    """Base of the priorities that count the pods of a service or controller on each node: their map phase."""

    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.OBJECTS
    reads_feasible = False

    def compile(self, pod: Pod, cluster: ClusterState) -> SpreadSpec:
        """Return namespace and labels as the spec."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        return SpreadSpec((namespace, tuple(sorted(labels.items()))), namespace, labels, OwnerPods())

    def selectors(self, spec: SpreadSpec, cluster: ClusterState) -> Sequence[Selector]:
        """Return the selectors that counted pods must all match. If there are none, no pod counts."""
        raise TypeError(f"{type(self).__name__} lacks selectors()")

    def pre_score(self, spec: SpreadSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Look up the counter; the params identify the pods that it counts."""
        pods, version = spec.pods, owners_version(cluster.catalog)
        if pods.version != version:
            pods.version = version
            selectors = self.selectors(spec, cluster)
            pods.key = ("spread", spec.namespace, tuple(sorted(map(repr, selectors))))
            pods.counter = None
            if selectors:
                pods.counter = cluster.matching_counter(pods.key, _matches_all(spec.namespace, selectors))
        return (pods.key,)


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
    """Prefers nodes, and even more so zones, with few pods of the same services and controllers."""

    name = "SelectorSpreadPriority"

    def selectors(self, spec: SpreadSpec, cluster: ClusterState) -> Sequence[Selector]:
        """Return the selectors of all services and controllers of the pod."""
        return selectors_of(spec.namespace, spec.labels, cluster.catalog)

    def score_rule(self, spec: SpreadSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores nodes and zones."""
        return SpreadByZone(spec.pods, cluster)


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """The former name of SelectorSpreadPriority. As upstream, it is the same rule: all services and controllers count."""

    name = "ServiceSpreadingPriority"


class ServiceAntiAffinity(SpreadPriority):
    """Prefers nodes with a label value on which few pods of the pod's first Service run. Argument: the label."""

    name = "ServiceAntiAffinity"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._label = classic_arguments(arguments).argument.service_anti_affinity or ""

    def selectors(self, spec: SpreadSpec, cluster: ClusterState) -> Sequence[Selector]:
        """Return the selector of the pod's first service by name."""
        selector = first_service_selector(spec.namespace, spec.labels, cluster.catalog)
        return () if selector is None else (selector,)

    def score_rule(self, spec: SpreadSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores values of the label."""
        return SpreadByLabel(spec.pods, self._label, cluster)


class OwnedPods(ScoreRule):
    """Base of the rules: counts the pods on a node that belong to the same owners.

    Attributes:
        domains: intp[capacity], the number of each node's zone or label value; 0 for nodes without one.
        count_of_domains: the largest such number plus one.
    """

    def __init__(self, pods: OwnerPods, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.normalizes = True
        self._pods = pods
        self.nodes = cluster.nodes
        self.counter: Counter | None = None
        self.domains: Any = np.zeros(0, dtype=np.intp)
        self.count_of_domains = 1
        self.by_domain: Any = np.zeros(1, dtype=np.int64)
        self._seen: object = None

    def refresh(self) -> bool:
        """Look up the counter of PreScore. If the params changed, every row is evaluated again in any case."""
        self.counter = self._pods.counter
        return False

    def score(self, row: int) -> int:
        """Return the number of counted pods on the node."""
        counter = self.counter
        return 0 if counter is None else counter.counts[row]

    def sums(self, raw: Ints, feasible: Flags) -> bytes:
        """Return the number of pods on the feasible nodes of each domain, as bytes of int64[domains]."""
        sums = np.zeros(self.count_of_domains, dtype=np.int64)
        found = sums
        for row in range(self.columns.count):
            if feasible[row]:
                found[self.domains[row]] += raw[row]
        return sums.tobytes()

    def decode_sums(self, scale: Scale) -> None:
        """Decode the sums in a scale."""
        if scale is not self._seen:
            self._seen = scale
            self.by_domain = np.frombuffer(scale[1], dtype=np.int64).copy()


class SpreadByZone(OwnedPods):
    """Scores 10 for the fewest pods: one third by node and two thirds by zone, or only by node without a zone."""

    def bind(self) -> None:
        """Number the zones of the nodes."""
        codes = zone_codes(self.nodes)
        self.domains = codes
        self.count_of_domains = int(codes.max(initial=0)) + 1

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the largest count of a node, and the counts per zone, empty if no feasible node is in a zone."""
        most, zoned = 0, False
        for row in range(self.columns.count):
            if feasible[row]:
                most = max(most, raw[row])
                zoned = zoned or self.domains[row] != 0
        return (int(most), self.sums(raw, feasible) if zoned else b"")

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the score of a node."""
        self.decode_sums(scale)
        most, score = scale[0], _MOST
        if most > 0:
            score = _MOST * ((most - raw) / float(most))
        zone = self.domains[row]
        if zone != 0 and len(self.by_domain):
            most_in_zone = 0
            for domain in range(1, len(self.by_domain)):
                most_in_zone = max(most_in_zone, self.by_domain[domain])
            in_zone = _MOST
            if most_in_zone > 0 and zone < len(self.by_domain):
                in_zone = _MOST * ((most_in_zone - self.by_domain[zone]) / float(most_in_zone))
            score = (score * (1.0 - _ZONE_WEIGHTING)) + (_ZONE_WEIGHTING * in_zone)
        return go.to_int64(score)


class SpreadByLabel(OwnedPods):
    """Scores 10 times the share of pods on nodes with other values of the label; 0 for nodes without the label."""

    def __init__(self, pods: OwnerPods, label: str, cluster: ClusterState) -> None:
        super().__init__(pods, cluster)
        self._label = label

    def bind(self) -> None:
        """Number the values of the label."""
        column = self.nodes.label_column(self._label)
        self.domains = column.codes + 1
        self.count_of_domains = len(column.values) + 1

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        """Return the number of pods on feasible nodes, in total and for each value of the label."""
        pods = 0
        for row in range(self.columns.count):
            if feasible[row]:
                pods += raw[row]
        return (int(pods), self.sums(raw, feasible))

    def normalize(self, scale: Scale, raw: int, row: int) -> int:
        """Return the score of a node."""
        self.decode_sums(scale)
        domain, pods, score = self.domains[row], scale[0], _MOST
        if domain == 0:
            return 0
        if pods > 0 and domain < len(self.by_domain):
            score = _MOST * ((pods - self.by_domain[domain]) / float(pods))
        return go.to_int64(score)


def zone_codes(nodes: NodeTable) -> Index:
    """Return a number for the zone (region and zone) of each row (intp[capacity]); `NO_ZONE` without one."""
    region, zone = nodes.label_column(BETA_REGION), nodes.label_column(BETA_ZONE)
    regions, zones = _without_empty(region), _without_empty(zone)
    codes: Index = (regions + 1) * (len(zone.values) + 1) + zones + 1
    return codes


def _without_empty(column: LabelColumn) -> Index:
    """Return the codes of a column, with the empty value treated as absent."""
    empty = column.index.get("")
    return column.codes if empty is None else np.where(column.codes == empty, -1, column.codes)
