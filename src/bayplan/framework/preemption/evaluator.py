"""Decide whether and on which node a pod that fits no node preempts others: upstream's preemption evaluator.

The constructor takes the settings of the plugin; the engine provides dry runs (`DryRuns`). Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Candidate, Diagnosis, PostFilterResult, format_reasons
from bayplan.framework.extender import Extender
from bayplan.framework.preemption.account import account_of
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.dry_runs import DryRuns
from bayplan.framework.preemption.extenders import call_extenders
from bayplan.framework.preemption.shortlist import Shortlist
from bayplan.framework.status import SUCCESS, Code, Status, error, unschedulable
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Index
from bayplan.state.pod_info import PodInfo

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CANDIDATE_LEFT = "no candidate node for preemption"
NEVER = "Never"
NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never."
VICTIM_TERMINATING = "not eligible due to a terminating pod on the nominated node."

_ERROR, _UNSCHEDULABLE = Code.ERROR, Code.UNSCHEDULABLE


class Evaluator:
    """Finds the node on which a pod should preempt other pods.

    Args:
        dry_runs: the engine's interface.
        min_candidate_nodes_percentage, min_candidate_nodes_absolute: the number of candidates to find, in percent of
            the potential nodes and as a minimum (see `number_of_candidates`).
        extenders: all extenders; those with a preempt verb may remove candidates, and change victims.
    """

    def __init__(
        self,
        dry_runs: DryRuns,
        *,
        min_candidate_nodes_percentage: int,
        min_candidate_nodes_absolute: int,
        extenders: Sequence[Extender] = (),
    ) -> None:
        self.min_candidate_nodes_percentage = min_candidate_nodes_percentage
        self.min_candidate_nodes_absolute = min_candidate_nodes_absolute
        self._dry_runs = dry_runs
        self._extenders = [extender for extender in extenders if extender.supports_preemption]
        self._budgets = DisruptionBudgets(dry_runs.cluster.catalog)

    def preempt(
        self, pod: Pod, diagnosis: Diagnosis, state: CycleState, *, offset: int | None = None
    ) -> tuple[PostFilterResult | None, Status]:
        """Return the node for a pod with the pods to evict from it, and the status.

        The result None leaves the pod's nomination unchanged; a result without a node clears it.

        Args:
            pod: the pod that fits no node.
            diagnosis: why it fits no node.
            state: the state of the cycle.
            offset: the index of the potential node at which the search starts; random if None.
        """
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        newest = self._dry_runs.newest(key)
        if newest is None:
            return None, error(f'pod "{pod.metadata.name}" not found')
        pod = newest
        ineligible = self.why_not_eligible(pod, diagnosis)
        if ineligible:
            return None, unschedulable(ineligible)
        rows, nodes = self.potential_nodes(diagnosis), self._dry_runs.cluster.nodes
        shortlist: Shortlist | None = None
        left: Shortlist | None = None
        chosen = ""
        # Records call this, if at all, before the cluster changes.
        diagnosis.preemption = lambda: account_of(rows, shortlist, left, chosen, nodes.names, len(nodes))
        if len(rows):
            # Upstream starts at a random node, so that preemption does not always affect the same nodes.
            if offset is None:
                offset = self._dry_runs.draw(len(rows))
            wanted = self.number_of_candidates(len(rows))
            shortlist = self.find_candidates(pod, state, rows, wanted, offset)
        if shortlist is None or not len(shortlist):
            return self._nothing_found(shortlist)
        left = shortlist
        if self._extenders:
            answer = call_extenders(self._extenders, pod, shortlist, self._dry_runs.cluster)
            if isinstance(answer, Status):
                left = None
                return None, answer
            left = answer
            if not len(left):
                return None, unschedulable(NO_CANDIDATE_LEFT)
        found = self._chosen(pod, left)
        chosen = found.nominated_node_name or ""
        return found, SUCCESS

    def why_not_eligible(self, pod: Pod, diagnosis: Diagnosis) -> str:
        """Return why a pod must not preempt other pods, or "".

        A pod whose victims are terminating on its nominated node waits until they are gone, unless filters rejected
        that node as unresolvable.
        """
        if pod.spec.preemption_policy == NEVER:
            return NEVER_PREEMPTS
        name = pod.status.nominated_node_name
        if not name:
            return ""
        cluster = self._dry_runs.cluster
        row = cluster.nodes.row_of.get(name)
        if row is None:
            return ""
        status = diagnosis.status_of(row)
        if status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        priority = pod.spec.priority or 0
        for info in cluster.pods_on[row].values():
            if info.priority < priority and terminating_by_preemption(info.pod):
                return VICTIM_TERMINATING
        return ""

    def potential_nodes(self, diagnosis: Diagnosis) -> Index:
        """Return the rows whose status preemption could change, in visiting order."""
        return self._dry_runs.in_visiting_order(diagnosis.rows_with(_UNSCHEDULABLE))

    def number_of_candidates(self, count: int) -> int:
        """Return the number of candidates at which a search among `count` potential nodes ends."""
        wanted = count * self.min_candidate_nodes_percentage // 100
        return min(max(wanted, self.min_candidate_nodes_absolute), count)

    def find_candidates(self, pod: Pod, state: CycleState, rows: Index, wanted: int, start: int = 0) -> Shortlist:
        """Dry-run preemption on `rows` from index `start` (wrapping) until `wanted` candidates are found."""
        return self._dry_runs.find_candidates(pod, state, rows, self._budgets, wanted, start)

    def candidates_everywhere(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> Sequence[Candidate]:
        """Return every node where the pod could preempt others, however many are needed.

        For explanations and comparisons.
        """
        rows = self.potential_nodes(diagnosis)
        if self.why_not_eligible(pod, diagnosis) or not len(rows):
            return ()
        return self.find_candidates(pod, state, rows, len(rows)).candidates(self._dry_runs.cluster.nodes.names)

    def _nothing_found(self, shortlist: Shortlist | None) -> tuple[PostFilterResult | None, Status]:
        errors: dict[str, None] = {}
        histogram: dict[str, int] = {}
        known = 0
        for status, rows in shortlist.infeasible() if shortlist is not None else ():
            if status.code is _ERROR:
                errors[status.message] = None
            known += len(rows)
            for reason in status.reasons:
                histogram[reason] = histogram.get(reason, 0) + len(rows)
        if errors:
            texts = list(errors)
            return None, error(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        total = len(self._dry_runs.cluster.nodes)
        if known < total:
            histogram[NOT_HELPFUL] = total - known
        # The pod's nomination, if it has one, is obsolete.
        return PostFilterResult(""), unschedulable(f"0/{total} nodes are available:{format_reasons(histogram)}")

    def _chosen(self, pod: Pod, shortlist: Shortlist) -> PostFilterResult:
        names = self._dry_runs.cluster.nodes.names
        best = shortlist.best()
        ties = shortlist.rows[best]
        row = self._dry_runs.pick(np.sort(ties))
        name = names[row] or ""
        priority = pod.spec.priority or 0
        lower = [other for other in self._dry_runs.nominated_to(name) if (other.spec.priority or 0) < priority]
        return PostFilterResult(
            nominated_node_name=name,
            victims=tuple([info.key for info in shortlist.victims_at(int(best[(ties == row).argmax()]))]),
            shortlist=shortlist,
            nominations_to_clear=tuple([f"{other.metadata.namespace}/{other.metadata.name}" for other in lower]),
        )


def terminating_by_preemption(pod: Pod) -> bool:
    """Return whether a pod is terminating because the scheduler preempted it."""
    if pod.metadata.deletion_timestamp is None:
        return False
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def importance(info: PodInfo) -> tuple[int, int]:
    """Return a key that sorts the most important pod first: higher priority, then earlier start."""
    return (-info.priority, info.start_ns)
