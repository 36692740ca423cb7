"""EqualPriority: the same score for every node."""

from __future__ import annotations

from bayplan.classic.plugins.node_label_presence import NO_SPEC, NoSpec
from bayplan.framework.plugin import Reads, ScorePlugin
from bayplan.framework.rule import ScoreRule
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState


class EqualPriority(ScorePlugin[NoSpec]):
    """Scores every node 1."""

    name = "EqualPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        """Return an empty spec."""
        return NO_SPEC

    def score_rule(self, spec: NoSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that scores every node 1."""
        return Equal(cluster.columns)


class Equal(ScoreRule):
    """Scores every node 1."""

    def score(self, row: int) -> int:
        """Return 1."""
        return 1
