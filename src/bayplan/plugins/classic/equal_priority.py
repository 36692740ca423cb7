"""EqualPriority: every node is as good as the others."""

from __future__ import annotations

from bayplan.framework.plugin import Params, Reads, ScorePlugin
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.node_label_presence import NO_SPEC, NoSpec
from bayplan.state.arrays import Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


class EqualPriority(ScorePlugin[NoSpec]):
    """Gives 1 to every node."""

    name = "EqualPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        """Need nothing."""
        return NO_SPEC

    def score(self, spec: NoSpec, params: Params | None, rows: Rows) -> Ints:
        """Return 1."""
        return rows.fill(1)
