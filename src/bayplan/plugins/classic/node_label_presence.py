"""CheckNodeLabelPresence and NodeLabelPriority: rules about which label keys nodes have, as a Policy says. They ignore the pod."""

from __future__ import annotations

import msgspec

from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads, ScorePlugin
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.arguments import classic_arguments
from bayplan.plugins.classic.failure_reasons import NODE_LABEL_PRESENCE_VIOLATED, verdict_of
from bayplan.plugins.classic.policy import LabelPreference, LabelsPresence
from bayplan.plugins.classic.priority import MAX_PRIORITY
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

VIOLATED = verdict_of(1, NODE_LABEL_PRESENCE_VIOLATED)


class NoSpec(msgspec.Struct, frozen=True):
    """Nothing of the pod is needed."""

    key: tuple[()] = ()


NO_SPEC = NoSpec()


class CheckNodeLabelPresence(FilterPlugin[NoSpec]):
    """Rejects nodes that lack one of some labels; or, the other way round, those that have one. Argument: `LabelsPresence`."""

    name = "CheckNodeLabelPresence"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._argument = classic_arguments(arguments).argument.labels_presence or LabelsPresence()

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        """Need nothing."""
        return NO_SPEC

    def filter(self, spec: NoSpec, params: Params | None, rows: Rows) -> Codes:
        """Return `VIOLATED` where a label's presence is not as wanted."""
        wrong = rows.everywhere(False)
        for label in self._argument.labels:
            wrong = wrong | ((rows.label(label) >= 0) != self._argument.presence)
        return rows.verdicts((wrong, VIOLATED))

    def reasons(self, spec: NoSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason."""
        return (NODE_LABEL_PRESENCE_VIOLATED,)


class NodeLabelPriority(ScorePlugin[NoSpec]):
    """Gives 10 to nodes that have a label, or to those that lack it. Argument: `LabelPreference`."""

    name = "NodeLabelPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._argument = classic_arguments(arguments).argument.label_preference or LabelPreference()

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        """Need nothing."""
        return NO_SPEC

    def score(self, spec: NoSpec, params: Params | None, rows: Rows) -> Ints:
        """Return 10 or 0."""
        exists = rows.label(self._argument.label) >= 0
        return rows.where(exists == self._argument.presence, MAX_PRIORITY, 0)
