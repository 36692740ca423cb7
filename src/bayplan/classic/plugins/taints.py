"""PodToleratesNodeTaints and TaintTolerationPriority: reject or avoid nodes with taints that pods don't tolerate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayplan.classic.plugins.failure_reasons import TAINTS_TOLERATIONS_NOT_MATCH, verdict_of
from bayplan.classic.plugins.priority import ReducedScoreRule
from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, Params, Reads
from bayplan.framework.rule import ScoreRule
from bayplan.objects.node import Taint
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import find_untolerated_taint, tolerates
from bayplan.plugins.taint_toleration import TaintTable, TaintTolerationSpec
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

UNTOLERATED = verdict_of(1, TAINTS_TOLERATIONS_NOT_MATCH)
PREFER_NO_SCHEDULE = "PreferNoSchedule"


def _key(pod: Pod) -> tuple[tuple[str, str, str, str], ...]:
    return tuple((item.key, item.operator, item.value, item.effect) for item in pod.spec.tolerations)


def _spec(pod: Pod, number_of: Callable[[tuple[Taint, ...]], int]) -> TaintTolerationSpec:
    """Return the pod's tolerations with a table that has a number, a verdict or a count, for each taint set."""
    table = TaintTable(number_of)
    return TaintTolerationSpec(_key(pod), table, table)


class PodToleratesNodeTaints(FilterPlugin[TaintTolerationSpec]):
    """Rejects nodes with NoSchedule or NoExecute taints that the pod does not tolerate."""

    name = "PodToleratesNodeTaints"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> TaintTolerationSpec:
        """Return the tolerations with an empty table."""
        tolerations = pod.spec.tolerations

        def verdict(taints: tuple[Taint, ...]) -> int:
            found = find_untolerated_taint(taints, tolerations, comparison_operators=False)
            return 0 if found is None else UNTOLERATED

        return _spec(pod, verdict)

    def filter(self, spec: TaintTolerationSpec, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes with an untolerated NoSchedule or NoExecute taint."""
        return spec.verdicts.of(rows).astype(np.uint16)

    def reasons(self, spec: TaintTolerationSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason."""
        return (TAINTS_TOLERATIONS_NOT_MATCH,)


class TaintTolerationPriority(NormalizePlugin[TaintTolerationSpec]):
    """Prefers nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    name = "TaintTolerationPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> TaintTolerationSpec:
        """Return the tolerations that apply to PreferNoSchedule, with an empty table."""
        tolerations = [item for item in pod.spec.tolerations if item.effect in ("", PREFER_NO_SCHEDULE)]

        def count(taints: tuple[Taint, ...]) -> int:
            return sum(
                taint.effect == PREFER_NO_SCHEDULE
                and not any(tolerates(item, taint, comparison_operators=False) for item in tolerations)
                for taint in taints
            )

        return _spec(pod, count)

    def score_rule(self, spec: TaintTolerationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that counts untolerated PreferNoSchedule taints."""
        return UntoleratedTaints(spec, cluster)


class UntoleratedTaints(ReducedScoreRule):
    """Counts the PreferNoSchedule taints that are not tolerated; fewer is better."""

    def __init__(self, spec: TaintTolerationSpec, cluster: ClusterState) -> None:
        super().__init__(cluster.columns, reverse=True)
        self._spec, self._cluster = spec, cluster
        self._counts: Any = np.zeros(0, dtype=np.int64)

    def bind(self) -> None:
        """Count the taints of the current nodes."""
        self._counts = self._spec.counts.of(Rows(self._cluster))

    def score(self, row: int) -> int:
        """Return the count for the node's taint set."""
        return self._counts[row]
