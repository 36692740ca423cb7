"""The engine's interface for preemption: gives the evaluator the state, the nominations and the plan of the cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bayplan.engine.nominated_pods import NominatedPodLister
from bayplan.engine.nominator import Nominator
from bayplan.engine.plan import Plan
from bayplan.engine.preemption.dry_run import DryRun
from bayplan.engine.select_host import Pick
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.preemption.disruption_budgets import DisruptionBudgets
from bayplan.framework.preemption.shortlist import Shortlist
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Index
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo

PLAN = "Plan"
"""Cycle state key under which a cycle that found no node stores its plan."""


class DryRunner:
    """Dry-runs preemption on the columns of the cluster (`bayplan.framework.preemption.dry_runs.DryRuns`).

    Created before the plugins that use it; `connect` sets what is created after them.

    Args:
        cluster: the state.
        pods: the newest versions of pods, by key.
        draw: the function that returns a random integer from 0 up to, but excluding, its argument.
        pick: chooses among equally good nodes.
    """

    def __init__(
        self, cluster: ClusterState, pods: Mapping[str, Pod], *, draw: Callable[[int], int], pick: Pick
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._draw = draw
        self._pick = pick
        self._nominator: Nominator | None = None
        self._nominated_pods: NominatedPodLister | None = None

    def connect(self, nominator: Nominator, nominated_pods: NominatedPodLister) -> None:
        """Set the nominations, once there is a queue."""
        self._nominator = nominator
        self._nominated_pods = nominated_pods

    @property
    def cluster(self) -> ClusterState:
        """Return the state."""
        return self._cluster

    def newest(self, key: str) -> Pod | None:
        """Return the newest version of a pod, or None."""
        return self._pods.get(key)

    def nominated_to(self, node_name: str) -> Sequence[Pod]:
        """Return the pods that are nominated to a node, oldest nomination first."""
        if self._nominator is None:
            return ()
        pods = (self._pods.get(key) for key in self._nominator.on_node(node_name).values())
        return [pod for pod in pods if pod is not None]

    def in_visiting_order(self, rows: Bools | None) -> Index:
        """Return the rows that `rows` selects (None: all), in the order in which the scheduler visits the nodes."""
        order = self._cluster.nodes.tree.order(self._cluster.nodes.row_of)
        return order if rows is None else order[rows[order]]

    def draw(self, count: int) -> int:
        """Return a random integer from 0 up to, but excluding, `count`."""
        return self._draw(count)

    def pick(self, rows: Index) -> int:
        """Return one of several equally good rows."""
        return self._pick(self._cluster, rows)

    def find_candidates(
        self, pod: Pod, state: CycleState, rows: Index, budgets: DisruptionBudgets, wanted: int, start: int = 0
    ) -> Shortlist:
        """Dry-run preemption by a pod on `rows` from index `start` (wrapping) until `wanted` candidates are found."""
        plan = state.read(PLAN, Plan)
        if plan is None or self._nominated_pods is None:
            raise TypeError("preemption outside of a cycle of this scheduler")
        if not isinstance(plan.dry_run, DryRun):
            plan.dry_run = DryRun(plan, self._nominated_pods.log)
        shortlist = plan.dry_run.search(rows, start, wanted, self._nominated_pods(pod), budgets)
        if len(shortlist) and not pod.spec.overhead:
            key = f"{pod.metadata.namespace}/{pod.metadata.name}"
            info = PodInfo(key, pod, plan.footprint, plan.pod_class, plan.priority, plan.owned_counters)
            self._nominated_pods.prepare(info)
        return shortlist
