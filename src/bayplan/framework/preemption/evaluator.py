"""Decide whether and on which node a pod that fits no node preempts others: upstream's preemption evaluator.

The engine provides dry runs (`DRY_RUN`); extenders may remove candidates and change their victims. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bayplan.base.errors import PluginError
from bayplan.framework.configuration.plugin_arguments import DefaultPreemptionArgs
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult, count_reasons, format_reasons
from bayplan.framework.extender import Extender, Victims
from bayplan.framework.extender_answers import ExtenderFailure
from bayplan.framework.preemption.account import account_of
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist, shortlist_of
from bayplan.framework.status import SUCCESS, Code, Status, error, unschedulable
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import join_errors
from bayplan.state.arrays import Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo

if TYPE_CHECKING:
    from bayplan.framework.plugin import Handle

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CANDIDATE_LEFT = "no candidate node for preemption"
NEVER = "Never"
NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never."
VICTIM_TERMINATING = "not eligible due to a terminating pod on the nominated node."

DRY_RUN = "DryRun"
"""Cycle state key under which a cycle that found no node stores a function that dry-runs preemption (a `partial`)."""


@dataclass(frozen=True)
class PreemptionChoices:
    """The random choices of preemption.

    Attributes:
        draw: returns a random integer from 0 up to, but excluding, its argument.
        pick: returns one of several equally good rows.
    """

    draw: Callable[[int], int]
    pick: Callable[[Index], int]


class Evaluator:
    """Finds the node on which a pod should preempt other pods.

    Args:
        handle: the handle of the plugin; must have `choices`. Extenders with a preempt verb take part.
        arguments: the number of candidates to find, in percent of the potential nodes and as a minimum; also an
            attribute.

    Raises:
        PluginError: the handle has no `choices`.
    """

    def __init__(self, handle: Handle, arguments: DefaultPreemptionArgs) -> None:
        if handle.choices is None:
            raise PluginError("preemption needs the random choices of a scheduler", hint="Handle(..., choices=...)")
        self.arguments = arguments
        self._cluster = handle.cluster
        self._pods = handle.pods
        self._choices = handle.choices
        self._extenders = [extender for extender in handle.extenders if extender.supports_preemption]
        self._budgets = DisruptionBudgets(handle.cluster.catalog)

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
        newest = self._pods.get(f"{pod.metadata.namespace}/{pod.metadata.name}")
        if newest is None:
            return None, error(f'pod "{pod.metadata.name}" not found')
        pod = newest
        ineligible = self.why_not_eligible(pod, diagnosis)
        if ineligible:
            return None, unschedulable(ineligible)
        rows, nodes = self.potential_nodes(diagnosis), self._cluster.nodes
        shortlist: Shortlist | None = None
        left: Shortlist | None = None
        chosen = ""
        # Records call this, if at all, before the cluster changes.
        diagnosis.preemption = lambda: account_of(rows, shortlist, left, chosen, nodes.names, len(nodes))
        if len(rows):
            # Upstream starts at a random node, so that preemption does not always affect the same nodes.
            if offset is None:
                offset = self._choices.draw(len(rows))
            wanted = self.number_of_candidates(len(rows))
            shortlist = left = self.find_candidates(pod, state, rows, wanted, offset)
        if left is None or not len(left):
            return self._nothing_found(left)
        if self._extenders:
            answer = call_extenders(self._extenders, pod, left, self._cluster)
            if isinstance(answer, Status):
                return None, answer
            left = answer
            if not len(left):
                return None, unschedulable(NO_CANDIDATE_LEFT)
        found = self._chosen(left)
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
        row = self._cluster.nodes.row_of.get(name)
        if row is None:
            return ""
        status = diagnosis.status_of(row)
        if status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        priority = pod.spec.priority or 0
        waits = any(
            info.priority < priority and _terminating_by_preemption(info.pod)
            for info in self._cluster.pods_on[row].values()
        )
        return VICTIM_TERMINATING if waits else ""

    def potential_nodes(self, diagnosis: Diagnosis) -> Index:
        """Return the rows whose status preemption could change, in visiting order."""
        rows, nodes = diagnosis.rows_with(Code.UNSCHEDULABLE), self._cluster.nodes
        order = nodes.tree.order(nodes.row_of)
        return order if rows is None else order[rows[order]]

    def number_of_candidates(self, count: int) -> int:
        """Return the number of candidates at which a search among `count` potential nodes ends."""
        wanted = count * self.arguments.min_candidate_nodes_percentage // 100
        return min(max(wanted, self.arguments.min_candidate_nodes_absolute), count)

    def find_candidates(self, pod: Pod, state: CycleState, rows: Index, wanted: int, start: int = 0) -> Shortlist:
        """Dry-run preemption on `rows` from index `start` (wrapping) until `wanted` candidates are found.

        The search continues while all candidates violate budgets; at most `wanted` of these are returned, after the
        others.
        """
        dry_run = state.read(DRY_RUN, partial)
        if dry_run is None:
            raise TypeError("preemption outside of a cycle of this scheduler")
        found: Shortlist = dry_run(pod, rows, self._budgets, wanted, start)
        return found

    def _nothing_found(self, shortlist: Shortlist | None) -> tuple[PostFilterResult | None, Status]:
        infeasible = shortlist.infeasible() if shortlist is not None else ()
        errors = [status.message for status, _ in infeasible if status.code is Code.ERROR]
        if errors:
            return None, error(join_errors(errors))
        total = len(self._cluster.nodes)
        counts = count_reasons([(status, len(rows)) for status, rows in infeasible], total, (NOT_HELPFUL,))
        # The pod's nomination, if it has one, is obsolete.
        return PostFilterResult(""), unschedulable(f"0/{total} nodes are available:{format_reasons(counts)}")

    def _chosen(self, shortlist: Shortlist) -> PostFilterResult:
        ties = shortlist.rows[shortlist.best()]
        ties.sort()
        row = self._choices.pick(ties)
        return PostFilterResult(
            nominated_node_name=self._cluster.nodes.names[row] or "",
            victims=tuple([info.key for info in shortlist.victims_at(int((shortlist.rows == row).argmax()))]),
            shortlist=shortlist,
            clears_nominations=True,
        )


def call_extenders(
    extenders: Sequence[Extender], pod: Pod, shortlist: Shortlist, cluster: ClusterState
) -> Shortlist | Status:
    """Call the extenders of a preemptor in order; return the remaining candidates, or the Error of an extender.

    `shortlist`: the candidates found by dry runs, at least one.
    """
    names = cluster.nodes.names
    victims: Mapping[str, Victims] = {
        names[row] or "": Victims(
            tuple(info.pod for info in shortlist.victims_at(number)), shortlist.violations_at(number)
        )
        for number, row in enumerate(shortlist.rows.tolist())
    }
    interested = [extender for extender in extenders if extender.is_interested(pod)]
    if not interested:
        return shortlist
    for extender in interested:
        try:
            found = extender.process_preemption(pod, victims, lambda name: pods_on(name, cluster))
        except ExtenderFailure as problem:
            if extender.ignorable:
                continue
            return error(str(problem))
        empty = [name for name, left in found.items() if not left.pods]
        if empty and not extender.ignorable:
            return error(f'expected at least one victim pod on node "{empty[0]}"')
        victims = {name: left for name, left in found.items() if left.pods}
        if not victims:
            break
    return shortlist_of([_entry(cluster, name, left) for name, left in victims.items()])


def pods_on(name: str, cluster: ClusterState) -> Sequence[Pod] | None:
    """Return the pods on a node, or None if there is no such node."""
    row = cluster.nodes.row_of.get(name)
    return None if row is None else [info.pod for info in cluster.pods_on[row].values()]


def _entry(cluster: ClusterState, name: str, victims: Victims) -> tuple[int, list[PodInfo], int]:
    row = cluster.nodes.row_of[name]
    infos = [cluster.pods[f"{pod.metadata.namespace}/{pod.metadata.name}"] for pod in victims.pods]
    return row, infos, victims.num_pdb_violations


def _terminating_by_preemption(pod: Pod) -> bool:
    """Return whether a pod is terminating because the scheduler preempted it."""
    target = next((each for each in pod.status.conditions if each.type == "DisruptionTarget"), None)
    if pod.metadata.deletion_timestamp is None or target is None:
        return False
    return target.status == "True" and target.reason == "PreemptionByScheduler"


def importance(info: PodInfo) -> tuple[int, int]:
    """Return a key that sorts the most important pod first: higher priority, then earlier start."""
    return (-info.priority, info.started_at())
