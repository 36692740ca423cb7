"""Predict, without a scheduling cycle, that a waiting pod would fail again as it did before."""

from __future__ import annotations

from bayplan.engine.cycle import first_failures
from bayplan.engine.plan import Plan
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterPlugin, Reads


class RetryPredictor:
    """Predicts whether waiting pods would fail again, from the plans of a scheduler.

    Args:
        scheduler: the scheduler.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        # The profiles whose PostFilter plugins are all built in, so that a pod's plan determines whether it fails.
        self._simple = {
            name
            for name, profile in scheduler.profiles.items()
            if all(type(plugin).__module__.startswith("bayplan.") for plugin in profile.post_filter)
        }

    def plan_of(self, queued: QueuedPod) -> Plan | None:
        """Return the plan that predicts the next attempt of a rejected pod; None if plans alone can't predict it."""
        pod = queued.pod
        name = pod.spec.scheduler_name
        if name not in self._simple or pod.spec.resource_claims:
            return None
        plans = self._scheduler.plans
        plan = plans.plan_for(self._scheduler.profiles[name], pod)
        plans.promote(plan)
        return plan if _evaluates_nodes_separately(plan) else None

    @property
    def has_no_nodes(self) -> bool:
        """Return whether the cluster has no nodes: a failure is then an error, which no plugin caused."""
        return not len(self._scheduler.state.nodes)

    def cannot_succeed(self, plan: Plan, rejecting: frozenset[str], now_ns: int) -> bool:
        """Return whether exactly the plugins that rejected a pod would reject it again."""
        scheduler = self._scheduler
        # `any` ignores the node "", under which pods that failed without a nomination are stored.
        if any(scheduler.queue.nominator) or len(scheduler.waiting_pods) or self._may_preempt(plan):
            return False
        if self.has_no_nodes:
            return False
        pre = plan.run_pre_filter_plugins(CycleState(now_ns))
        if pre.status is not None:
            names = (pre.status.plugin,) if pre.status.plugin else pre.narrowed_by
            return pre.status.code.rejects and rejecting == frozenset(names)
        plan.refresh_filters()
        if plan.filtered.has_errors or plan.filtered.count or not _evaluates_nodes_separately(plan):
            return False
        nominated_pods = scheduler.nominated_pods
        failures = first_failures(plan, nominated_pods(plan.pod), nominated_pods.log)
        found = frozenset(plan.filtered.results[value >> 16].name for value in failures.counts)
        return rejecting == (found if plan.pre.node_names is None else found.union(plan.pre.narrowed_by))

    def _may_preempt(self, plan: Plan) -> bool:
        if not plan.profile.post_filter or plan.pod.spec.preemption_policy == "Never":
            return False
        return self._scheduler.state.has_pods_below(plan.priority)


def _evaluates_nodes_separately(plan: Plan) -> bool:
    """Return whether every verdict on a node depends only on that node, and placements change at most one filter's.

    Otherwise (affinity between pods, spreading, host ports along with resources) a pod that gets a node changes which
    plugin rejects the others, and then the number of pods tried before them at the same instant matters.
    """
    parts = plan.filtered.results
    return sum(not part.static for part in parts) <= 1 and all(
        part.incremental
        and (
            not part.params
            or not isinstance(part.plugin, PreFilterPlugin)
            or part.plugin.pre_filter_reads(part.spec) in (Reads.NOTHING, Reads.NODES)
        )
        for part in parts
    )
