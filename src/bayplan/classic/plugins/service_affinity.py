"""CheckServiceAffinity: the pods of a service must run on nodes with the same values of certain labels.

Argument: the labels. The first pod of a service may run on any node; the others must match its node, unless their node
selector sets the labels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.failure_reasons import SERVICE_AFFINITY_VIOLATED, verdict_of
from bayplan.classic.plugins.label_selectors import selector_from_set
from bayplan.classic.plugins.pod_changes import CountingRule, PodChanges
from bayplan.classic.plugins.pod_owners import services_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import ERROR_BIT, Status
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import Requirement, Selector
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState
from bayplan.state.node_matcher import matches_labels
from bayplan.state.pod_info import PodInfo
from bayplan.state.views import Rows

VIOLATED = verdict_of(1, SERVICE_AFFINITY_VIOLATED)
NOWHERE = 2 | ERROR_BIT
NOWHERE_TEXT = 'node "" not found'


@dataclass(frozen=True, slots=True)
class ServiceAffinitySpec:
    """The namespace and labels of the pod, and the rule's labels that its node selector sets.

    Attributes:
        same: the selector of pods with all labels of this pod.
        selected: the labels of the rule that the node selector sets, with their values.
    """

    key: tuple[object, ...]
    namespace: str = field(compare=False)
    labels: dict[str, str] = field(compare=False)
    same: Selector = field(compare=False)
    selected: dict[str, str] = field(compare=False)


class CheckServiceAffinity(PreFilterPlugin[ServiceAffinitySpec], FilterPlugin[ServiceAffinitySpec]):
    """Rejects nodes whose values of the labels differ from those on the node of another pod of the Service.

    Upstream takes any such pod; this rule takes the first by namespace and name. Params: (label, value) pairs.
    """

    name = "CheckServiceAffinity"
    reads = Reads.NODES
    pre_reads = Reads.OBJECTS

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._labels = classic_arguments(arguments).argument.service_affinity or ()

    def compile(self, pod: Pod, cluster: ClusterState) -> ServiceAffinitySpec:
        """Return the data by which the other pods of the service are found."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        wanted = pod.spec.node_selector or {}
        selected = {label: wanted[label] for label in self._labels if label in wanted}
        key = (namespace, tuple(sorted(labels.items())), tuple(sorted(selected.items())))
        same = Selector(Requirement(label, "In", (value,)) for label, value in labels.items())
        return ServiceAffinitySpec(key, namespace, labels, same, selected)

    def pre_filter(
        self, spec: ServiceAffinitySpec, cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Return the labels that the node must have as params."""
        node = None
        if self.depends_on_other_pod(spec, cluster):
            first = min((info for info in cluster.pods.values() if _counts(spec, info)), key=_key, default=None)
            node = cluster.nodes.nodes[first.row] if first is not None else None
        return PreFilterResult(tuple(self.wanted(spec, node).items()))

    def depends_on_other_pod(self, spec: ServiceAffinitySpec, cluster: ClusterState) -> bool:
        """Return whether the node of another pod of the service determines the labels."""
        if len(self._labels) <= len(spec.selected):
            return False
        return bool(services_of(spec.namespace, spec.labels, cluster.catalog))

    def wanted(self, spec: ServiceAffinitySpec, node: Node | None) -> dict[str, str]:
        """Return the labels that the node selector sets, and those of the other pod's node."""
        wanted = dict(spec.selected)
        if node is not None:
            for label in self._labels:
                if label in node.metadata.labels:
                    wanted.setdefault(label, node.metadata.labels[label])
        return wanted

    def filter_rule(self, spec: ServiceAffinitySpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that compares the labels of a node."""
        return SameLabels(self, spec, cluster)

    def reasons(self, spec: ServiceAffinitySpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason, or the error."""
        return (NOWHERE_TEXT,) if verdict == NOWHERE else (SERVICE_AFFINITY_VIOLATED,)


class SameLabels(CountingRule):
    """Returns `VIOLATED` for nodes on which a label has a different value."""

    def __init__(self, plugin: CheckServiceAffinity, spec: ServiceAffinitySpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.reads_others = True
        self._plugin, self._spec, self._cluster = plugin, spec, cluster
        self._seen: Params | None = None
        self._selector = selector_from_set({})
        self._matches: Bools = np.zeros(0, dtype=np.bool_)

    def bind(self) -> None:
        """Compare the labels of the current nodes."""
        self._matches = matches_labels(self._selector, Rows(self._cluster))

    def refresh(self) -> bool:
        """Read the labels of PreFilter. If the params changed, every row is evaluated again in any case."""
        if self.params is not self._seen:
            self._seen = self.params
            wanted = {}
            for entry in self.params or ():
                assert isinstance(entry, tuple)
                wanted[str(entry[0])] = str(entry[1])
            self._selector = selector_from_set(wanted)
            self.bind()
        return False

    def filter(self, row: int) -> int:
        """Compare the labels of the node."""
        return 0 if self._matches[row] else VIOLATED

    def filter_changed(self, row: int, changes: PodChanges) -> int:
        """Return the verdict on a row whose pods a trial has moved.

        Return an error if the only other pods of the service are nominated pods, which have no node.
        """
        plugin, spec, cluster = self._plugin, self._spec, self._cluster
        node = None
        if plugin.depends_on_other_pod(spec, cluster):
            others = [
                info for info in cluster.pods.values() if info.key not in changes.nominated and _counts(spec, info)
            ]
            first = min(others, key=_key, default=None)
            if first is not None:
                node = cluster.nodes.nodes[first.row]
            elif _any_counts(spec, changes.nominated.values()):
                return NOWHERE
        selector = selector_from_set(plugin.wanted(spec, node))
        here = cluster.nodes.nodes[row]
        assert here is not None
        return 0 if selector.matches(here.metadata.labels) else VIOLATED


def _counts(spec: ServiceAffinitySpec, info: PodInfo) -> bool:
    metadata = info.pod.metadata
    return metadata.namespace == spec.namespace and spec.same.matches(metadata.labels)


def _any_counts(spec: ServiceAffinitySpec, infos: Iterable[PodInfo]) -> bool:
    return any(_counts(spec, info) for info in infos)


def _key(info: PodInfo) -> str:
    return info.key
