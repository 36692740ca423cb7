"""PodToleratesNodeTaints and TaintTolerationPriority: pods stay away from nodes with taints that they don't tolerate."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.framework.plugin import FilterPlugin, Params, Reads
from bayplan.objects.node import Taint
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import find_untolerated_taint, tolerates
from bayplan.plugins.classic.failure_reasons import TAINTS_TOLERATIONS_NOT_MATCH, verdict_of
from bayplan.plugins.classic.priority import ReducedPriority
from bayplan.plugins.taint_toleration import REJECTING_EFFECTS, TaintTable
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

UNTOLERATED = verdict_of(1, TAINTS_TOLERATIONS_NOT_MATCH)
PREFER_NO_SCHEDULE = "PreferNoSchedule"


@dataclass(frozen=True, slots=True)
class TaintSpec:
    """The pod's tolerations, and a number that they make of each taint set."""

    key: tuple[tuple[str, str, str, str], ...]
    numbers: TaintTable = field(compare=False)


def _key(pod: Pod) -> tuple[tuple[str, str, str, str], ...]:
    return tuple((item.key, item.operator, item.value, item.effect) for item in pod.spec.tolerations)


class PodToleratesNodeTaints(FilterPlugin[TaintSpec]):
    """Rejects nodes with taints NoSchedule or NoExecute that the pod does not tolerate."""

    name = "PodToleratesNodeTaints"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING

    def compile(self, pod: Pod, cluster: ClusterState) -> TaintSpec:
        """Keep the tolerations and make an empty table."""
        tolerations = pod.spec.tolerations

        def verdict(taints: tuple[Taint, ...]) -> int:
            found = find_untolerated_taint(
                taints,
                tolerations,
                comparison_operators=False,
                matters=lambda taint: taint.effect in REJECTING_EFFECTS,
            )
            return 0 if found is None else UNTOLERATED

        return TaintSpec(_key(pod), TaintTable(verdict))

    def filter(self, spec: TaintSpec, params: Params | None, rows: Rows) -> Codes:
        """Return `UNTOLERATED` where a taint that rejects is not tolerated."""
        return rows.codes(rows.take(spec.numbers.of(rows.state.nodes.taint_sets), rows.taints()))

    def reasons(self, spec: TaintSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the one reason."""
        return (TAINTS_TOLERATIONS_NOT_MATCH,)


class TaintTolerationPriority(ReducedPriority[TaintSpec]):
    """Prefers nodes with few taints PreferNoSchedule that the pod does not tolerate."""

    name = "TaintTolerationPriority"
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    reverse = True

    def compile(self, pod: Pod, cluster: ClusterState) -> TaintSpec:
        """Keep the tolerations that can matter and make an empty table."""
        tolerations = [item for item in pod.spec.tolerations if item.effect in ("", PREFER_NO_SCHEDULE)]

        def count(taints: tuple[Taint, ...]) -> int:
            return sum(
                taint.effect == PREFER_NO_SCHEDULE
                and not any(tolerates(item, taint, comparison_operators=False) for item in tolerations)
                for taint in taints
            )

        return TaintSpec(_key(pod), TaintTable(count))

    def score(self, spec: TaintSpec, params: Params | None, rows: Rows) -> Ints:
        """Return the number of taints that are not tolerated."""
        return rows.take(spec.numbers.of(rows.state.nodes.taint_sets), rows.taints())
