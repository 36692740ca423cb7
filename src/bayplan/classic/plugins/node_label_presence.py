"""CheckNodeLabelPresence and NodeLabelPriority: rules of a Policy on the label keys of nodes. They ignore the pod."""

from __future__ import annotations

import msgspec

from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.failure_reasons import NODE_LABEL_PRESENCE_VIOLATED, verdict_of
from bayplan.classic.plugins.priority import MAX_PRIORITY
from bayplan.classic.policy import LabelPreference, LabelsPresence
from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads, ScorePlugin
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

VIOLATED = verdict_of(1, NODE_LABEL_PRESENCE_VIOLATED)


class NoSpec(msgspec.Struct, frozen=True):
    """The spec of rules that need no data of the pod."""

    key: tuple[()] = ()


NO_SPEC = NoSpec()


class CheckNodeLabelPresence(FilterPlugin[NoSpec]):
    """Rejects nodes that lack one of the argument's labels or, with `presence` False, nodes that have one.

    Argument: `LabelsPresence`.
    """

    name = "CheckNodeLabelPresence"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._argument = classic_arguments(arguments).argument.labels_presence or LabelsPresence()

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        """Return the empty spec."""
        return NO_SPEC

    def filter_rule(self, spec: NoSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that checks the labels of a node."""
        return WrongLabels(self._argument, cluster)

    def reasons(self, spec: NoSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (NODE_LABEL_PRESENCE_VIOLATED,)


class NodeLabelPriority(ScorePlugin[NoSpec]):
    """Scores 10 for nodes that have a label, or with `presence` False, for nodes that lack it, else 0.

    Argument: `LabelPreference`.
    """

    name = "NodeLabelPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._argument = classic_arguments(arguments).argument.label_preference or LabelPreference()

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        """Return the empty spec."""
        return NO_SPEC

    def score_rule(self, spec: NoSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that checks the label of a node."""
        return HasLabel(self._argument, cluster)


class WrongLabels(FilterRule):
    """Returns `VIOLATED` for nodes that have or lack a label contrary to `presence`."""

    def __init__(self, argument: LabelsPresence, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._argument = argument
        self._columns = [cluster.nodes.label_column(label) for label in argument.labels]

    def filter(self, row: int) -> int:
        """Check each label of the node."""
        for column in self._columns:
            if (column.codes[row] >= 0) != self._argument.presence:
                return VIOLATED
        return 0


class HasLabel(ScoreRule):
    """Scores 10 if the node has or lacks the label as preferred, else 0."""

    def __init__(self, argument: LabelPreference, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._presence = argument.presence
        self._column = cluster.nodes.label_column(argument.label)

    def score(self, row: int) -> int:
        """Return the score of a node."""
        return MAX_PRIORITY if (self._column.codes[row] >= 0) == self._presence else 0
