"""The descheduler as an agent of a simulation: it runs its profiles at a fixed interval, and evicts pods.

It skips runs that would find nothing new, because nothing has changed since the last run and no pod has become too old.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.answers.question_cluster import QuestionCluster, SchedulerFactory
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import parse_time_ns
from bayplan.descheduling.plugins import RUNS
from bayplan.descheduling.policy import PodLifeTimeArgs, Policy
from bayplan.descheduling.view import ClusterView
from bayplan.objects.pod import Pod
from bayplan.sim.descheduled import Descheduled
from bayplan.sim.operations import Evict, Operation
from bayplan.sim.result import PodFate
from bayplan.sim.simulator import PERPETUAL_HORIZON_NS, Simulator


class Descheduler:
    """The descheduler of one simulation; see `bayplan.sim.agents.Agent`.

    Args:
        policy: the policy.
        interval_ns: the time between two runs (`--descheduling-interval`).
        simulator: the simulator of the cluster.
        scheduler: returns the factory of schedulers; called at each run.

    Attributes:
        evicted: the evictions, in order.
    """

    def __init__(
        self, policy: Policy, interval_ns: int, simulator: Simulator, scheduler: Callable[[], SchedulerFactory]
    ) -> None:
        self.evicted: list[Descheduled] = []
        self._policy = policy
        self._interval_ns = interval_ns
        self._simulator = simulator
        self._scheduler = scheduler
        self._seen_changes = -1
        self._next_run_ns = simulator.start_ns + interval_ns
        self._next_age_ns: int | None = None
        self._last_evicted: list[Pod] = []
        self._last_success_ns = 0

    def next_wakeup_ns(self, changes: int) -> int | None:
        """Return the time of the next run that may find something new; None if nothing has changed and no pod gets too old."""
        if changes != self._seen_changes:
            return self._on_grid(self._simulator.now_ns)
        return None if self._next_age_ns is None else self._on_grid(self._next_age_ns)

    def _on_grid(self, time_ns: int) -> int:
        """Return the time of the first future run that is not before a given time."""
        start_ns = self._simulator.start_ns
        steps = -(-(time_ns - start_ns) // self._interval_ns)
        return max(start_ns + steps * self._interval_ns, self._next_run_ns)

    def act(self, now_ns: int, changes: int) -> Sequence[tuple[int, Operation]]:
        """Run all profiles; return the evictions."""
        self._next_run_ns = now_ns + self._interval_ns
        self._seen_changes = changes
        store = self._simulator.cluster.store
        objects = [item for kind in store.kinds() for item in store.all(kind)]
        view = ClusterView(
            QuestionCluster(objects, self._scheduler(), now_ns=now_ns, seed=self._simulator.seed), self._policy, now_ns
        )
        self._next_age_ns = None
        for profile in self._policy.profiles:
            for name, args in profile.plugins:
                RUNS[name](view, profile.evictor, args)
                if isinstance(args, PodLifeTimeArgs):
                    self._wait_for_age(view, args.max_pod_life_time_seconds * SECOND_NS)
        self._last_evicted = [pod for pod, _ in view.evicted]
        self.evicted += [Descheduled(now_ns, pod.key, pod.spec.node_name, plugin) for pod, plugin in view.evicted]
        return [(now_ns, Evict(pod.key)) for pod, _ in view.evicted]

    def endless_reason(self, given_ns: int) -> str:
        """Return why it seems to evict pods forever: the last run evicted a later pod, and no pod succeeds; else ""."""
        for pod in self._last_evicted:
            created = pod.metadata.creation_timestamp
            if created is not None and parse_time_ns(created) > given_ns:
                # While pods succeed, Jobs make progress, and the evictions may end with them.
                if self._any_success_since(self._simulator.now_ns - PERPETUAL_HORIZON_NS):
                    return ""
                again = f"the descheduler evicts pods such as {pod.key} again and again"
                return f"{again}, and no pod has succeeded for a day"
        return ""

    def _any_success_since(self, time_ns: int) -> bool:
        """Return whether a pod has succeeded since a given time."""
        # Search all pods only if the success that was found last is too old: this is asked at every instant.
        if self._last_success_ns <= time_ns:
            ends = (each.ended_ns for each in self._simulator.pods if each.fate is PodFate.SUCCEEDED)
            self._last_success_ns = max((end_ns for end_ns in ends if end_ns is not None), default=time_ns)
        return self._last_success_ns > time_ns

    def _wait_for_age(self, view: ClusterView, limit_ns: int) -> None:
        """Plan a run for the time when the next pod becomes older than a limit."""
        pods = [*(pod for pods in view.pods.values() for pod in pods), *view.waiting]
        left = [limit_ns - view.age_ns(pod) for pod in pods if view.age_ns(pod) <= limit_ns]
        if left:
            time_ns = view.now_ns + min(left) + 1
            self._next_age_ns = time_ns if self._next_age_ns is None else min(self._next_age_ns, time_ns)
