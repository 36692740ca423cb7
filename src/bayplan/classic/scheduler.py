"""The classic scheduler: the scheduler of `bayplan.engine.scheduler` with the cycle of Kubernetes 1.16."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.base.version import CLASSIC_KUBERNETES_VERSION
from bayplan.classic.cycle import ClassicResult, CycleSettings, schedule_pod
from bayplan.classic.events import ClassicEvents
from bayplan.classic.preemption import NOTHING, Preemption, preempt, with_extenders
from bayplan.classic.queue import ClassicQueue
from bayplan.engine.actions import Action, CycleReport, Emit, Evict, Nominate, SetCondition
from bayplan.engine.binding_cycle import Binding, BindingCycle
from bayplan.engine.plan import Plan
from bayplan.engine.plan_cache import PlanCache
from bayplan.engine.queued_pod import QueuedPod, key_of
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import Pick
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.extender import Extender
from bayplan.framework.profile import Profile
from bayplan.framework.status import Status, error
from bayplan.framework.waiting_pods import WaitingPods
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState


class ClassicBindingCycle(BindingCycle):
    """The binding cycle of the classic scheduler."""

    def failed(self, binding: Binding, status: Status, now_ns: int, *, waited: bool = False) -> CycleReport:
        """Release the node of an assumed pod after a failure, and requeue the pod.

        In this release, the released room does not cause other pods to be retried.
        """
        self._unreserve_and_forget(binding)
        return self.requeue(binding.queued, status, now_ns, rejected=waited)


class ClassicScheduler(Scheduler):
    """One kube-scheduler of Kubernetes 1.16.

    Args:
        state, profiles, queue, pods, extenders, record_level, waiting_pods: as for `Scheduler`.
        settings: the settings that its cycles share.
        pick_node: the function that chooses among equally good nodes for preemption.
        non_preempting: the gate NonPreemptingPriority.
        disable_preemption: whether preemption is off.
    """

    release = CLASSIC_KUBERNETES_VERSION

    def __init__(
        self,
        state: ClusterState,
        profiles: dict[str, Profile],
        queue: ClassicQueue,
        pods: dict[str, Pod],
        *,
        settings: CycleSettings,
        pick_node: Pick,
        non_preempting: bool = False,
        disable_preemption: bool = False,
        extenders: Sequence[Extender] = (),
        record_level: RecordLevel = RecordLevel.SUMMARY,
        waiting_pods: WaitingPods | None = None,
    ) -> None:
        super().__init__(
            state,
            profiles,
            queue,
            pods,
            pick=settings.pick,
            sampling=settings.sampling,
            extenders=extenders,
            record_level=record_level,
            waiting_pods=waiting_pods,
            nominates_expected=False,
        )
        self.settings = settings
        self._pick_node = pick_node
        self._non_preempting = non_preempting
        self._disable_preemption = disable_preemption
        self._events = ClassicEvents(self, queue)
        self.bindings = ClassicBindingCycle(self, nominates_expected=False)

    def _schedule(self, queued: QueuedPod, now_ns: int) -> CycleReport:
        pod = queued.pod
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is None or self._skip_pod_schedule(queued):
            return self._skipped(queued, profile, now_ns)
        cycle_state = CycleState(now_ns)
        plan = self.plans.plan_for(profile, pod)
        result = schedule_pod(plan, pod, cycle_state, self.nominated_pods, self.settings, self.extenders)
        if result.common.row < 0:
            return self._not_scheduled(queued, plan, result, now_ns)
        node_name = self.state.nodes.names[result.common.row] or ""
        self.record(queued, Outcome.SCHEDULED, plan, result.common, now_ns, node=node_name)
        self.assume(plan, pod, queued.key, result.common.row)
        return self.bindings.begin(Binding(queued, plan, cycle_state, node_name), now_ns)

    def _not_scheduled(self, queued: QueuedPod, plan: Plan, result: ClassicResult, now_ns: int) -> CycleReport:
        """End a cycle that found no node: try preemption, record the cycle, and requeue the pod."""
        pod, common, fit_error = queued.pod, result.common, result.fit_error
        failure = common.failure or error("no node was chosen")
        message = fit_error.message() if fit_error is not None else failure.message
        outcome = Outcome.UNSCHEDULABLE if failure.code.rejects else Outcome.ERROR
        found = NOTHING if fit_error is None or self._disable_preemption else self.find_preemption(pod, result)
        row = self._pick_node(self.state, list(found.best)) if found.best else -1
        node_name = (self.state.nodes.names[row] or "") if row >= 0 else ""
        victims = found.candidates[row].keys if row >= 0 else ()
        self.record(queued, outcome, plan, common, now_ns, message=message, nominated=node_name, victims=victims)
        rejecting = frozenset(fit_error.rejecting()) if fit_error is not None else frozenset[str]()
        actions = self._fail(queued, rejecting, message, now_ns)
        if node_name:
            actions += self._actuate(pod, node_name, victims)
        for other in self.nominations_to_clear(pod, node_name, found):
            if other.status.nominated_node_name:
                actions.append(Nominate(other, ""))
        return CycleReport(pod, outcome, "", message, actions)

    def _fail(self, queued: QueuedPod, rejecting: frozenset[str], message: str, now_ns: int) -> list[Action]:
        """Requeue a pod; return the actions. In this release, even an error is reported as Unschedulable."""
        self.queue.fail(queued, now_ns, unschedulable_plugins=rejecting)
        return [
            Emit(queued.pod, "Warning", "FailedScheduling", "Scheduling", message),
            SetCondition(queued.pod, "Unschedulable", message),
        ]

    def fail_by_plugin(self, queued: QueuedPod, problem: Exception, now_ns: int) -> CycleReport:
        """End a cycle in which a custom plugin failed; see `Scheduler.fail_by_plugin`."""
        self.plans = PlanCache(self.state)
        message = str(problem)
        self.record(queued, Outcome.ERROR, None, None, now_ns, message=message)
        actions = self._fail(queued, frozenset(), message, now_ns)
        return CycleReport(queued.pod, Outcome.ERROR, "", message, actions)

    def preemption_failed(self, pod: Pod, now_ns: int) -> None:
        """Do nothing if an eviction is rejected: the pod keeps its nomination, and waits for an event."""

    def find_preemption(self, pod: Pod, result: ClassicResult) -> Preemption:
        """Find nodes on which a pod could preempt others, and call the extenders that support preemption."""
        assert result.fit_error is not None
        newest = self.pods.get(key_of(pod))
        if newest is None:
            return NOTHING
        nominated = self.nominated_pods(newest)
        found = preempt(
            newest,
            result.fit_error,
            nominated,
            non_preempting=self._non_preempting,
            custom=self.settings.custom,
        )
        return with_extenders(found, newest, self.extenders, self.state) if self.extenders else found

    def nominations_to_clear(self, pod: Pod, node_name: str, found: Preemption) -> list[Pod]:
        """Return the pods whose nomination must be cleared.

        These are the pods of lower priority that are nominated to the node, or the pod itself if preemption can't help.
        """
        if found.clear_own_nomination:
            return [self.pods.get(key_of(pod), pod)]
        return self.lower_nominations(pod, node_name)

    def _actuate(self, preemptor: Pod, node_name: str, victims: Sequence[str]) -> list[Action]:
        """Return the actions that nominate the pod and evict its victims."""
        self.queue.nominator.add(preemptor, node_name)
        actions: list[Action] = [Nominate(preemptor, node_name)]
        for key in victims:
            victim = self.pods.get(key)
            if victim is not None:
                actions.append(Evict(victim, preemptor, node_name, cancels_pre_bind=False))
                note = f"Preempted by {key_of(preemptor)} on node {node_name}"
                actions.append(Emit(victim, "Normal", "Preempted", "Preempting", note))
        return actions

    def binding_failed(
        self, pod: Pod, message: str, now_ns: int, *, plugin: str = "DefaultBinder", point: str = "Bind"
    ) -> list[Action]:
        """Requeue a pod that the host could not bind; see `Scheduler.binding_failed`."""
        text = f"Binding rejected: {message}" if point == "Bind" else message
        return super().binding_failed(pod, text, now_ns, plugin="", point=point)
