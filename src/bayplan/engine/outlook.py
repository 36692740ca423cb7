"""Tell without a cycle that a pod which waits could only fail as it did before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayplan.engine.plan import Plan
from bayplan.engine.pre_filters import is_static
from bayplan.engine.queued_pod import QueuedPod
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterPlugin
from bayplan.framework.profile import Profile

FEW_ROWS = 16
"""Up to so many rows are looked at one by one."""


class Outlook:
    """What a scheduler's plans say about waiting pods.

    Args:
        scheduler: whose pods wait.
        lowest_priority: returns the lowest priority of all pods that run, None where none does: nobody can preempt pods of
            their own priority.
    """

    def __init__(self, scheduler: Scheduler, lowest_priority: Callable[[], int | None]) -> None:
        self._scheduler = scheduler
        self._lowest_priority = lowest_priority
        self._simple = {name: _is_simple(profile) for name, profile in scheduler.profiles.items()}
        # By the plan's identity: the plan, where its columns stood, and who rejected nodes then.
        self._known: dict[int, tuple[Plan, tuple[object, ...], frozenset[str]]] = {}

    def plan_of(self, queued: QueuedPod) -> Plan | None:
        """Return the plan by which a pod that was rejected can be judged; None where a cycle does more than plans tell."""
        pod = queued.pod
        name = pod.spec.scheduler_name
        if not self._simple.get(name, False) or pod.spec.resource_claims:
            return None
        plan = self._scheduler.plans.plan_for(self._scheduler.profiles[name], pod)
        return plan if _judges_nodes_one_by_one(plan) else None

    def is_hopeless(self, plan: Plan, rejecting: frozenset[str], now_ns: int) -> bool:
        """Return whether a pod that these plugins rejected would be rejected by no others now, on every node."""
        scheduler = self._scheduler
        # Pods that failed without a nomination are filed under the node "".
        if any(scheduler.queue.nominator) or len(scheduler.waiting_pods) or self._may_preempt(plan):
            return False
        # Without any node nobody rejects the pod: upstream takes that for an error.
        if not len(plan.state.nodes):
            return False
        pre = plan.run_pre_filter_plugins(CycleState(now_ns))
        if pre.status is not None:
            return pre.status.code.rejects and {pre.status.plugin or min(pre.narrowed_by, default="")} <= rejecting
        plan.refresh_filters()
        if plan.failure is not None or plan.feasible_count or not _judges_nodes_one_by_one(plan):
            return False
        return self._rejecting(plan) <= rejecting

    def _may_preempt(self, plan: Plan) -> bool:
        if not plan.profile.post_filter or plan.pod.spec.preemption_policy == "Never":
            return False
        lowest = self._lowest_priority()
        return lowest is not None and lowest < plan.priority

    def _rejecting(self, plan: Plan) -> frozenset[str]:
        """Return the plugins that reject nodes first; where few rows changed, with those that did before."""
        state, parts = plan.state, plan.filter_parts
        stamp = (state.node_log.end, state.ports_log.end, plan.pre, *(part.epoch for part in parts))
        known = self._known.get(id(plan))
        rows = None
        if known is not None and known[0] is plan and known[1][1:] == stamp:
            rows = state.usage_log.since(known[1][0])  # type: ignore[arg-type]  # The stamp begins with this position.
        found: frozenset[str]
        if known is None or rows is None or len(rows) > FEW_ROWS:
            first, _ = plan.first_failures()
            numbers = np.unique(first[plan.examined()]).tolist()
            found = frozenset(parts[number].name for number in numbers if number >= 0)
            if plan.pre.node_names is not None:
                found |= frozenset(plan.pre.narrowed_by)
        else:
            examined, found = plan.examined(), known[2]
            for row in rows:
                if examined[row]:
                    found |= {next(part.name for part in parts if part.values.item(row))}
        self._known[id(plan)] = (plan, (state.usage_log.end, *stamp), found)
        return found


def _judges_nodes_one_by_one(plan: Plan) -> bool:
    """Return whether a verdict about a node follows from what is on that node, and one filter alone can change its mind.

    Otherwise (affinity between pods, spreading, host ports beside resources) a pod that gets a node changes who rejects the
    others, and then it matters how many went before them at the same instant.
    """
    parts = plan.filter_parts
    return sum(not part.static for part in parts) <= 1 and all(
        part.incremental
        and (
            not part.params
            or not isinstance(part.plugin, PreFilterPlugin)
            or is_static(part.plugin.pre_filter_reads(part.spec))
        )
        for part in parts
    )


def _is_simple(profile: Profile) -> bool:
    """Return whether nothing but plans decides about a failure: no PostFilter that is not ours."""
    return all(type(plugin).__module__.startswith("bayplan.") for plugin in profile.post_filter)
