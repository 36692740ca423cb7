"""The scheduler as a state machine: it takes cluster events, schedules pods one by one, and returns actions.

It has no clock: every call passes the time. `bayplan.engine.assemble` creates one from a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from msgspec import structs
from msgspec.structs import replace

from bayplan.base.errors import PluginError, PluginFailure
from bayplan.base.go_text.durations import format_duration
from bayplan.base.version import KUBERNETES_VERSION
from bayplan.engine import cycle
from bayplan.engine.actions import IN_MEMORY, Action, CycleReport, Emit, Evict, Nominate, SetCondition, Update
from bayplan.engine.binding_cycle import Binding, BindingCycle, rejected_or_error
from bayplan.engine.cluster_events import ClusterEvents
from bayplan.engine.cycle import ScheduleResult
from bayplan.engine.nominated_pods import NominatedPodLister
from bayplan.engine.plan import Plan
from bayplan.engine.plan_cache import PlanCache
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod, key_of, uid_of
from bayplan.engine.records import Outcome, Record, RecordLevel, Records
from bayplan.engine.select_host import NodeSampling, Pick
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
from bayplan.framework.extender import Extender
from bayplan.framework.plugin import PreBindPlugin
from bayplan.framework.profile import Profile
from bayplan.framework.status import Code, Status, error
from bayplan.framework.waiting_pods import WaitingPods
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo

# Looked up once: looking up a member of an enumeration takes as long as creating a record.
_SCHEDULED, _REJECTED, _FAILED = Outcome.SCHEDULED, Outcome.UNSCHEDULABLE, Outcome.ERROR
_UNSCHEDULABLE, _UNRESOLVABLE = Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE

MAX_EVENT_NOTE = 1024
"""Upstream truncates longer event notes and appends three dots."""


class Scheduler:
    """One kube-scheduler: its state, queue, profiles and records.

    Args:
        state: the cluster as columns; only this object writes it.
        profiles: the profiles by scheduler name.
        queue: the scheduling queue; its pod lister must be `pods.get`.
        pods: all unfinished pods of the cluster, by key; shared with the queue.
        pick: chooses one of several best nodes.
        sampling: decides when enough feasible nodes have been found; None to evaluate all nodes.
        extenders: the extenders, in calling order.
        record_level: the level of detail of records.
        waiting_pods: the pods that Permit plugins hold on their nodes (WaitingPod upstream); shared with plugins.
        nominates_expected: see `BindingCycle`.

    Attributes:
        assumed: keys of the pods that are assumed on a node and not yet reported as bound; the values are unused.
        survives_plugins: whether an exception of a plugin only fails its cycle; otherwise it propagates to the caller.
        missing_plugins: the enabled in-tree plugins that this version lacks, or implements only in part.

    Class attributes:
        release: the Kubernetes release that it reproduces.
    """

    release: ClassVar[str] = KUBERNETES_VERSION

    def __init__(
        self,
        state: ClusterState,
        profiles: dict[str, Profile],
        queue: SchedulingQueue,
        pods: dict[str, Pod],
        *,
        pick: Pick,
        sampling: NodeSampling | None = None,
        extenders: Sequence[Extender] = (),
        record_level: RecordLevel = RecordLevel.SUMMARY,
        waiting_pods: WaitingPods | None = None,
        nominates_expected: bool = True,
    ) -> None:
        self.state = state
        self.profiles = profiles
        self.queue = queue
        self.pods = pods
        self.plans = PlanCache(state)
        self.records = Records(record_level)
        self.waiting_pods = waiting_pods if waiting_pods is not None else WaitingPods()
        self.missing_plugins: tuple[str, ...] = ()
        self.survives_plugins = False
        self.assumed: dict[str, None] = {}
        self.bindings = BindingCycle(self, nominates_expected=nominates_expected)
        self.nominated_pods = NominatedPodLister(state, queue.nominator, pods)
        self.sampling = sampling
        self.extenders = extenders
        self._pick = pick
        self._events = ClusterEvents(self)

    # Events.

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> list[Action]:
        """Apply a change of the cluster; return the actions for the host.

        `old` is None for an addition, `new` for a deletion.
        """
        actions = self._events.handle(old, new, now_ns)
        if self.waiting_pods.decided:
            actions += self.bindings.process_decided(now_ns)
        return actions

    def next_wakeup_ns(self, now_ns: int) -> int | None:
        """Return the earliest instant, now or later, at which `tick` would do something, or None."""
        instants = [self.queue.next_flush_ns(now_ns), self.waiting_pods.next_deadline_ns()]
        earliest = min((instant for instant in instants if instant is not None), default=None)
        return None if earliest is None else max(earliest, now_ns)

    def tick(self, now_ns: int) -> list[Action]:
        """Run the timers: backoff, unschedulable time-out, Permit time-outs."""
        self.queue.flush_backoff(now_ns)
        self.queue.flush_unschedulable(now_ns)
        actions: list[Action] = []
        for waiting, plugin in self.waiting_pods.expired(now_ns):
            waited = format_duration(waiting.timeouts[plugin])
            text = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            actions += self.reject_waiting_pod(waiting.key, Status(Code.UNSCHEDULABLE, (text,), plugin), now_ns)
        return actions + self.bindings.process_decided(now_ns)

    # The scheduling cycle.

    def schedule_one(self, now_ns: int) -> CycleReport | None:
        """Schedule the next pod of the queue; return None if no pod is ready."""
        queued = self.queue.pop()
        if queued is None:
            return None
        try:
            report = self._schedule(queued, now_ns)
        except (PluginFailure, PluginError) as problem:
            if not self.survives_plugins:
                raise
            report = self.fail_by_plugin(queued, problem, now_ns)
        except Exception as problem:
            # Plugins that read nodes one by one have already noted pod and node (`PerNodePlugin`).
            if not getattr(problem, "__notes__", ()):
                problem.add_note(f"pod {queued.key}")
            raise
        if self.waiting_pods.decided:
            actions = (*report.actions, *self.bindings.process_decided(now_ns))
            report = structs.replace(report, actions=actions)
        return report

    def _schedule(self, queued: QueuedPod, now_ns: int) -> CycleReport:
        pod = queued.pod
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is None or self._skip_pod_schedule(queued):
            return self._skipped(queued, profile, now_ns)
        cycle_state = CycleState(now_ns)
        plan = self.plans.plan_for(profile, pod)
        result = cycle.schedule_pod(
            plan, pod, cycle_state, self.nominated_pods, self._pick, self.sampling, self.extenders
        )
        if result.row < 0:
            return self._unschedulable(queued, profile, plan, result, cycle_state, now_ns)
        node_name = self.state.nodes.names[result.row] or ""
        self.record(queued, _SCHEDULED, plan, result, now_ns, node_name)
        self.assume(plan, pod, queued.key, result.row)
        return self.bindings.begin(Binding(queued, plan, cycle_state, node_name), now_ns)

    def _skip_pod_schedule(self, queued: QueuedPod) -> bool:
        pod = queued.pod
        return pod.metadata.deletion_timestamp is not None or queued.key in self.assumed

    def _skipped(self, queued: QueuedPod, profile: Profile | None, now_ns: int) -> CycleReport:
        """End the cycle of a pod that is being deleted, already has a node, or names a scheduler without a profile."""
        pod, actions, message = queued.pod, list[Action](), ""
        self.queue.done(queued.uid)
        if profile is None:
            message = f'no profile for scheduler name "{pod.spec.scheduler_name}"'
        elif pod.metadata.deletion_timestamp is not None:
            message = f"skip schedule deleting pod: {queued.key}"
            actions.append(Emit(pod, "Warning", "FailedScheduling", "Scheduling", message))
        self.record(queued, Outcome.SKIPPED, None, None, now_ns, message=message)
        return CycleReport(pod, Outcome.SKIPPED, "", message, actions)

    def fail_by_plugin(self, queued: QueuedPod, problem: Exception, now_ns: int) -> CycleReport:
        """End a cycle in which a plugin failed before the pod was given a node: it is retried after a backoff."""
        # The plugin interrupted an update of results that many plans share: compile all plans again.
        self.plans = PlanCache(self.state)
        failure = error(str(problem)).by(problem.plugin if isinstance(problem, PluginFailure) else "")
        return self.bindings.requeue(queued, failure, now_ns)

    def assume(self, plan: Plan, pod: Pod, key: str, row: int) -> None:
        """Count a pod on a node before it is bound, so that the next cycle sees it there."""
        info = PodInfo(key, pod, plan.footprint, plan.pod_class, plan.priority, plan.owned_counters)
        self.state.place(info, row)
        self.assumed[key] = None
        if self.queue.nominator.node_by_uid:
            self.queue.nominator.remove(uid_of(pod))

    # Failed cycles.

    def _unschedulable(
        self,
        queued: QueuedPod,
        profile: Profile,
        plan: Plan,
        result: ScheduleResult,
        cycle_state: CycleState,
        now_ns: int,
    ) -> CycleReport:
        """End a cycle that found no node: run PostFilter, record the cycle, and requeue the pod."""
        failure = result.failure or error("no node was chosen")
        found: PostFilterResult | None = PostFilterResult("")
        answer = failure
        if result.diagnosis is not None:
            if profile.post_filter:
                found, answer = self.run_post_filter_plugins(profile, queued.pod, result.diagnosis, cycle_state)
            failure = replace(failure, reasons=(result.diagnosis.message(),))
        outcome = _REJECTED if failure.code.rejects else _FAILED
        nominated = (found.nominated_node_name or "") if found is not None else ""
        victims = tuple(found.victims) if found is not None else ()
        message = failure.message
        self.record(queued, outcome, plan, result, now_ns, message=message, nominated=nominated, victims=victims)
        if nominated:
            self.records.report(queued.key, "PostFilter", answer.plugin, answer)
        rejecting = result.diagnosis.unschedulable_plugins if result.diagnosis is not None else ()
        given_up = [
            Update(queued.pod, "", item)
            for plugin in profile.post_filter
            if isinstance(plugin, PreBindPlugin)
            for item in plugin.updates(cycle_state)
        ]
        actions = self.handle_scheduling_failure(queued, failure, rejecting, found, now_ns)
        return CycleReport(queued.pod, outcome, "", failure.message, [*given_up, *actions])

    def run_post_filter_plugins(
        self, profile: Profile, pod: Pod, diagnosis: Diagnosis, cycle_state: CycleState
    ) -> tuple[PostFilterResult | None, Status]:
        """Run PostFilter plugins until one succeeds, fails or rejects for good; the diagnosis gets their message."""
        found: PostFilterResult | None = None
        reasons: list[str] = []
        status, rejector = Status(_UNSCHEDULABLE), ""
        for plugin in profile.post_filter:
            answer, status = plugin.post_filter(pod, diagnosis, cycle_state)
            if status.ok or status.code is _UNRESOLVABLE:
                diagnosis.post_filter_message = status.message
                return answer, status.by(plugin.name)
            if not status.code.rejects:
                diagnosis.post_filter_message = status.message
                return None, status.by(plugin.name)
            if answer is not None and answer.nominated_node_name is not None:
                found = answer
            reasons += status.reasons
            rejector = rejector or plugin.name
        diagnosis.post_filter_message = ", ".join(reasons)
        return found, Status(_UNSCHEDULABLE, tuple(reasons), rejector)

    def handle_scheduling_failure(
        self,
        queued: QueuedPod,
        failure: Status,
        rejecting: Iterable[str],
        found: PostFilterResult | None,
        now_ns: int,
        pending: Iterable[str] = (),
    ) -> list[Action]:
        """Requeue the pod of a failed attempt; return the actions for its event, condition, nomination and victims.

        Args:
            queued: the popped record.
            failure: code and message.
            rejecting: the plugins that rejected the pod, whose events may bring it back; empty if an error ended the
                attempt.
            found: the result of PostFilter: names the node to nominate, or "" to clear the nomination; None leaves it
                unchanged.
            now_ns: the time.
            pending: the plugins among `rejecting` that returned Pending; their events skip the backoff.
        """
        nominated_node_name = found.nominated_node_name if found is not None else None
        known = self.pods.get(queued.key)
        self.queue.fail(
            queued,
            now_ns,
            unschedulable_plugins=frozenset(rejecting),
            pending_plugins=frozenset(pending),
            nominated_node_name=nominated_node_name,
        )
        if known is not None and not known.spec.node_name and uid_of(known) != queued.uid:
            # Another pod of the same name has been created since; nothing is reported about this one.
            return []
        pod = queued.pod
        note = failure.message
        if len(note) > MAX_EVENT_NOTE:
            note = note[: MAX_EVENT_NOTE - 4] + " ..."
        reason = "Unschedulable" if failure.code.rejects else "SchedulerError"
        actions: list[Action] = [
            Emit(pod, "Warning", "FailedScheduling", "Scheduling", note),
            SetCondition(pod, reason, failure.message),
        ]
        if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
            actions.append(Nominate(pod, nominated_node_name))
        if found is not None and nominated_node_name:
            actions += self._actuate_preemption(pod, found, nominated_node_name, now_ns)
        return actions

    def _actuate_preemption(self, preemptor: Pod, found: PostFilterResult, node_name: str, now_ns: int) -> list[Action]:
        """Clear nominations of lower priority and evict victims. Victims that wait at Permit are rejected instead."""
        actions: list[Action] = []
        for other in self.lower_nominations(preemptor, node_name) if found.clears_nominations else ():
            self.queue.nominator.remove(uid_of(other))
            actions.append(Nominate(other, ""))
        for key in found.victims:
            victim = self.pods.get(key)
            if victim is None or victim.metadata.deletion_timestamp is not None:
                continue
            note = f"Preempted by pod {uid_of(preemptor)} on node {node_name}"
            if self.waiting_pods.get(key) is not None:
                actions += self.reject_waiting_pod(key, error("waiting on permit for pod: preempted"), now_ns)
                note += IN_MEMORY
            else:
                actions.append(Evict(victim, preemptor, node_name))
            actions.append(Emit(victim, "Normal", "Preempted", "Preempting", note))
        return actions

    def lower_nominations(self, pod: Pod, node_name: str) -> list[Pod]:
        """Return the pods of lower priority than `pod` that are nominated to a node, oldest nomination first."""
        priority = pod.spec.priority or 0
        nominated = [self.pods.get(key) for key in self.queue.nominator.on_node(node_name).values()]
        return [other for other in nominated if other is not None and (other.spec.priority or 0) < priority]

    def preemption_failed(self, pod: Pod, now_ns: int) -> None:
        """Retry a pod whose victims the host could not evict."""
        profile = self.profiles.get(pod.spec.scheduler_name)
        for plugin in profile.pre_enqueue if profile is not None else ():
            plugin.stop_waiting(pod)
        self.queue.activate([pod], now_ns)

    def forget(self, key: str) -> None:
        """Remove an assumed pod from its node, if it is still assumed."""
        if key in self.assumed:
            del self.assumed[key]
            if key in self.state.pods:
                self.state.remove_pod(key)

    # Permit, and the host's reports of bindings.

    def reject_waiting_pod(self, key: str, status: Status, now_ns: int) -> list[Action]:
        """Reject a waiting pod: it releases its node and returns to the queue."""
        waiting = self.waiting_pods.get(key)
        if waiting is not None:
            waiting.reject_with(status)
        return self.bindings.process_decided(now_ns)

    def binding_failed(
        self, pod: Pod, message: str, now_ns: int, *, plugin: str = "DefaultBinder", point: str = "Bind"
    ) -> list[Action]:
        """Requeue a pod that the host could not bind, or for which it could not write an update.

        The host drops its other actions for this binding. It reports successful bindings as events instead.

        Args:
            pod: the pod, in any version. If another pod has its name by now, the binding of that one has not failed.
            message: the reason from the API server.
            now_ns: the time.
            plugin: the plugin that failed; `""` for an extender, whose message is used unchanged.
            point: the extension point; PreBind if an update could not be written.
        """
        key = key_of(pod)
        binding = self.bindings.pending.get(key)
        if binding is None or binding.queued.uid != uid_of(pod):
            return []
        del self.bindings.pending[key]
        self.records.report(key, point, plugin, error(message))
        status = rejected_or_error(error(message), plugin, point) if plugin else error(message)
        return [*self.bindings.failed(binding, status, now_ns).actions, *self.bindings.process_decided(now_ns)]

    # Records.

    def record(
        self,
        queued: QueuedPod,
        outcome: Outcome,
        plan: Plan | None,
        result: ScheduleResult | None,
        now_ns: int,
        node: str = "",
        message: str = "",
        nominated: str = "",
        victims: tuple[str, ...] = (),
    ) -> None:
        """Record how an attempt ended."""
        feasible = evaluated = ties = total = 0
        if result is not None:
            feasible, evaluated = result.feasible_nodes, result.evaluated_nodes
            ties, total = len(result.ties), result.total
        key, attempt = queued.key, queued.attempts
        record = Record(
            now_ns, key, attempt, outcome, node, feasible, evaluated, ties, total, message, nominated, victims
        )
        self.records.add(record, plan, result)
