"""TaintToleration: rejects nodes with taints that a pod does not tolerate, and prefers nodes with few such taints.

Untolerated taints with the effect NoSchedule or NoExecute reject; the score counts those with PreferNoSchedule. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/, KEP-5471 (operators Gt and Lt).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import FilterPlugin, Handle, NormalizePlugin, Params, PreScorePlugin, Reads
from bayplan.framework.rule import ScoreRule
from bayplan.framework.status import UNRESOLVABLE_BIT, Status
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod, Toleration
from bayplan.objects.selectors import find_untolerated_taint, tolerates
from bayplan.plugins.normalize_score import StretchedArrayRule
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

REASON = "node(s) had untolerated taint(s)"
UNTOLERATED = 1 | UNRESOLVABLE_BIT


class TaintTable:
    """A number for each distinct set of taints on nodes, computed when the set appears."""

    __slots__ = ("_number_of", "_numbers", "_taint_sets")

    def __init__(self, number_of: Callable[[tuple[Taint, ...]], int]) -> None:
        self._number_of = number_of
        self._taint_sets: list[tuple[Taint, ...]] = []
        self._numbers: Ints = np.zeros(0, dtype=np.int64)

    def of(self, rows: Rows) -> Ints:
        """Return the numbers of the taints of nodes (int64[rows])."""
        taint_sets = rows.state.nodes.taint_sets
        if taint_sets is not self._taint_sets:
            self._taint_sets = taint_sets
            self._numbers = self._numbers[:0]
        known = len(self._numbers)
        if known != len(taint_sets):
            fresh = [self._number_of(taints) for taints in taint_sets[known:]]
            self._numbers = np.concatenate((self._numbers, np.array(fresh, dtype=np.int64)))
        return self._numbers[rows.taints()]


class TaintTolerationSpec(Struct, frozen=True, eq=False):
    """The pod's tolerations, and their results for each set of taints.

    Attributes:
        key: the tolerations without tolerationSeconds, which does not affect scheduling.
        verdicts: the verdict on each set of taints.
        counts: for each set of taints, the number of PreferNoSchedule taints that are not tolerated.
    """

    key: tuple[tuple[str, str, str, str], ...]
    verdicts: TaintTable
    counts: TaintTable


class TaintToleration(
    FilterPlugin[TaintTolerationSpec], PreScorePlugin[TaintTolerationSpec], NormalizePlugin[TaintTolerationSpec]
):
    """Rejects nodes with taints that the pod does not tolerate; fewer PreferNoSchedule taints score better."""

    name = "TaintToleration"
    texts = MappingProxyType({UNTOLERATED: REASON})
    error_without_pre_score = 'failed to read "PreScoreTaintToleration" from cycleState: not found'
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    reads_feasible = False
    compiles_requests = False
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._comparison_operators = handle.feature_gates.enabled("TaintTolerationComparisonOperators")

    def compile(self, pod: Pod, cluster: ClusterState) -> TaintTolerationSpec:
        """Return the tolerations with empty tables."""
        tolerations = pod.spec.tolerations

        def verdict(taints: tuple[Taint, ...]) -> int:
            return UNTOLERATED if self._is_untolerated(taints, tolerations) else 0

        def count(taints: tuple[Taint, ...]) -> int:
            avoided = [taint for taint in taints if taint.effect == "PreferNoSchedule"]
            return sum(
                not any(tolerates(item, taint, comparison_operators=self._comparison_operators) for item in tolerations)
                for taint in avoided
            )

        key = tuple((item.key, item.operator, item.value, item.effect) for item in tolerations)
        return TaintTolerationSpec(key, TaintTable(verdict), TaintTable(count))

    def _is_untolerated(self, taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
        operators = self._comparison_operators
        return find_untolerated_taint(taints, tolerations, comparison_operators=operators) is not None

    def filter(self, spec: TaintTolerationSpec, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes with an untolerated NoSchedule or NoExecute taint."""
        return spec.verdicts.of(rows).astype(np.uint16)

    def pre_score(self, spec: TaintTolerationSpec, cluster: ClusterState, feasible: Bools) -> Params | Status:
        """Return no params: Score needs only the spec."""
        return ()

    def score_rule(self, spec: TaintTolerationSpec, cluster: ClusterState) -> ScoreRule:
        """Return the rule that reverses the scores: the fewest taints become 100."""
        return StretchedArrayRule(self, spec, cluster, reverse=True)

    def score(self, spec: TaintTolerationSpec, params: Params | None, rows: Rows) -> Ints:
        """Count the PreferNoSchedule taints that are not tolerated."""
        return spec.counts.of(rows)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register nodes that are added or change their taints, and new tolerations of the pod."""
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
        toleration = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
        return (
            (node, self.is_schedulable_after_node_change),
            (toleration, is_schedulable_after_pod_toleration_change),
        )

    @hint(Node, new=True)
    def is_schedulable_after_node_change(self, pod: Pod, before: Node | None, after: Node) -> bool:
        """Queue the pod if it tolerates the node's taints now and did not before."""
        tolerations = pod.spec.tolerations
        was_untolerated = before is None or self._is_untolerated(before.spec.taints, tolerations)
        return was_untolerated and not self._is_untolerated(after.spec.taints, tolerations)


@hint(Pod, new=True)
def is_schedulable_after_pod_toleration_change(pod: Pod, before: Pod | None, after: Pod) -> bool:
    """Queue the pod if it is the pod whose tolerations changed."""
    return after.metadata.uid == pod.metadata.uid
