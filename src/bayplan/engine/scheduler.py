"""The scheduler as a state machine: events of the cluster go in, pods are scheduled one by one, actions come out.

It has no clock: every call says what time it is. `bayplan.engine.assemble` makes one from a configuration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import Struct, structs

from bayplan.engine.actions import Action, Bind, Emit, Evict, Nominate, SetCondition, Update
from bayplan.engine.cluster_events import ClusterEvents
from bayplan.engine.cycle import ScheduleResult, schedule_pod
from bayplan.engine.extenders import bind_by_extenders
from bayplan.engine.node_sampling import NodeSampling
from bayplan.engine.nominated_pods import NominatedPods
from bayplan.engine.nominator import NominatingInfo, NominatingMode
from bayplan.engine.plan import Plan
from bayplan.engine.plan_cache import PlanCache
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod, uid_of
from bayplan.engine.records import Outcome, RecordLevel, Records
from bayplan.engine.select_host import Pick
from bayplan.engine.waiting_pods import WaitingPod, WaitingPods
from bayplan.framework.configuration.go_text import format_duration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult, told_reasons
from bayplan.framework.events import ASSIGNED_POD_DELETE
from bayplan.framework.extender import Extender
from bayplan.framework.profile import Profile
from bayplan.framework.status import SUCCESS, Code, Status, error, unschedulable
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import PodInfo

MAX_EVENT_NOTE = 1024
"""Longer notes of events are cut off by upstream, with three dots."""

MAX_PERMIT_TIMEOUT_NS = 15 * 60 * 1_000_000_000
"""No pod waits longer for a permit, whatever the plugin says."""


class CycleReport(Struct, frozen=True, gc=False):
    """What `schedule_one` did: the pod, how the cycle ended, and what the host is to do."""

    pod: Pod
    outcome: Outcome
    node_name: str
    message: str
    actions: Sequence[Action]


class Scheduler:
    """One kube-scheduler: its state, queue, profiles and records.

    Args:
        state: the cluster as columns; written by this object alone.
        profiles: by scheduler name.
        queue: the scheduling queue; its pod lister must be `pods.get`.
        pods: all pods of the cluster that are not finished, by key; shared with the queue.
        pick: how one of several best nodes is chosen.
        sampling: when the search for nodes ends; None: when all have been looked at.
        extenders: in the order in which they are asked.
        record_level: how much is recorded.

    Attributes:
        missing_plugins: in-tree plugins that the configuration asks for and that this version lacks.
    """

    def __init__(
        self,
        state: ClusterState,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        pods: dict[str, Pod],
        *,
        pick: Pick,
        sampling: NodeSampling | None = None,
        extenders: Sequence[Extender] = (),
        record_level: RecordLevel = RecordLevel.SUMMARY,
    ) -> None:
        self.state = state
        self.profiles = profiles
        self.queue = queue
        self.pods = pods
        self.plans = PlanCache(state)
        self.records = Records(record_level)
        self.waiting_pods = WaitingPods()
        self.missing_plugins: tuple[str, ...] = ()
        self.assumed: dict[str, None] = {}
        self.nominated_pods = NominatedPods(state, queue.nominator, pods)
        self.sampling = sampling
        self.extenders = extenders
        self._pick = pick
        self._events = ClusterEvents(self)

    # Events in.

    def handle(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> list[Action]:
        """Take in a change of the cluster: an addition (no `old`), an update, or a deletion (no `new`)."""
        return self._events.handle(old, new, now_ns)

    def next_wakeup_ns(self, now_ns: int) -> int | None:
        """Return the earliest instant at which `tick` would do something, or None."""
        instants = (self.queue.next_flush_ns(now_ns), self.waiting_pods.next_deadline_ns())
        return min((instant for instant in instants if instant is not None), default=None)

    def tick(self, now_ns: int) -> list[Action]:
        """Run the timers: backoff, unschedulable time-out, Permit time-outs."""
        self.queue.flush_backoff(now_ns)
        self.queue.flush_unschedulable(now_ns)
        actions: list[Action] = []
        for key, waiting, plugin in self.waiting_pods.expired(now_ns):
            waited = format_duration(waiting.timeouts[plugin])
            text = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            actions += self.reject_waiting_pod(key, Status(Code.UNSCHEDULABLE, (text,), plugin), now_ns)
        return actions

    # A pod is scheduled.

    def schedule_one(self, now_ns: int) -> CycleReport | None:
        """Schedule the next pod of the queue; None where none is ready."""
        queued = self.queue.pop()
        if queued is None:
            return None
        pod = queued.pod
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is None or self._skip_pod_schedule(queued):
            return self._skipped(queued, profile, now_ns)
        cycle_state = CycleState(now_ns)
        plan = self.plans.plan_for(profile, pod)
        result = schedule_pod(plan, pod, cycle_state, self.nominated_pods, self._pick, self.sampling, self.extenders)
        if result.row < 0:
            return self._unschedulable(queued, profile, plan, result, cycle_state, now_ns)
        node_name = self.state.nodes.names[result.row] or ""
        self._record(queued, Outcome.SCHEDULED, plan, result, now_ns, node=node_name)
        self.assume(plan, pod, queued.key, result.row)
        status = self._reserve_and_permit(queued, profile, cycle_state, node_name, now_ns)
        if status.code is Code.WAIT:
            return CycleReport(pod, Outcome.SCHEDULED, node_name, "", ())
        if not status.ok:
            return self._rolled_back(queued, profile, cycle_state, node_name, status, now_ns)
        return self._bind(queued, profile, cycle_state, node_name, now_ns)

    def _skip_pod_schedule(self, queued: QueuedPod) -> bool:
        return queued.pod.metadata.deletion_timestamp is not None or queued.key in self.assumed

    def _skipped(self, queued: QueuedPod, profile: Profile | None, now_ns: int) -> CycleReport:
        """End the cycle of a pod that nobody is responsible for, that is being deleted or has a node already."""
        pod, actions, message = queued.pod, list[Action](), ""
        self.queue.done(queued.uid)
        if profile is None:
            message = f'no profile for scheduler name "{pod.spec.scheduler_name}"'
        elif pod.metadata.deletion_timestamp is not None:
            message = f"skip schedule deleting pod: {queued.key}"
            actions.append(Emit(pod, "Warning", "FailedScheduling", "Scheduling", message))
        self._record(queued, Outcome.SKIPPED, None, None, now_ns, message=message)
        return CycleReport(pod, Outcome.SKIPPED, "", message, actions)

    def assume(self, plan: Plan, pod: Pod, key: str, row: int) -> None:
        """Count a pod on a node before it is bound, so that the next cycle sees it there."""
        info = PodInfo(key, pod, plan.footprint, plan.pod_class, plan.priority, plan.owned_counters)
        self.state.place(info, row)
        self.assumed[key] = None
        if len(self.queue.nominator):
            self.queue.unnominate(pod)

    def _reserve_and_permit(
        self, queued: QueuedPod, profile: Profile, cycle_state: CycleState, node_name: str, now_ns: int
    ) -> Status:
        pod = queued.pod
        for reserver in profile.reserve:
            status = reserver.reserve(cycle_state, pod, node_name)
            if not status.ok:
                return _rejected_or_error(status, reserver.name, "Reserve")
        timeouts: dict[str, int] = {}
        for permitter in profile.permit:
            status, timeout_ns = permitter.permit(cycle_state, pod, node_name)
            if status.code is Code.WAIT:
                timeouts[permitter.name] = min(timeout_ns, MAX_PERMIT_TIMEOUT_NS)
            elif not status.ok:
                return _rejected_or_error(status, permitter.name, "Permit")
        if timeouts:
            deadlines = {plugin: now_ns + timeout_ns for plugin, timeout_ns in timeouts.items()}
            self.waiting_pods.add(queued.key, WaitingPod(queued, pod, node_name, cycle_state, deadlines, timeouts))
            return Status(Code.WAIT)
        return SUCCESS

    def _bind(
        self, queued: QueuedPod, profile: Profile, cycle_state: CycleState, node_name: str, now_ns: int
    ) -> CycleReport:
        """Run the rest of the binding cycle; from here on the pod can fail, but not be found unschedulable."""
        pod = queued.pod
        self.queue.done(queued.uid)
        updates: list[Action] = []
        for binder in profile.pre_bind:
            status = binder.pre_bind(cycle_state, pod, node_name)
            if not status.ok:
                failed = _rejected_or_error(status, binder.name, "PreBind")
                return self._binding_failed(queued, profile, cycle_state, node_name, failed, now_ns)
            updates += [Update(pod, node_name, item) for item in binder.updates(cycle_state)]
        extender, status = bind_by_extenders(self.extenders, pod, node_name) if self.extenders else ("", SUCCESS)
        if not extender:
            status = _run_bind_plugins(profile, cycle_state, pod, node_name)
        if not status.ok:
            return self._binding_failed(queued, profile, cycle_state, node_name, status, now_ns)
        for told in profile.post_bind:
            told.post_bind(cycle_state, pod, node_name)
        bind = Bind(pod, node_name, extender)
        return CycleReport(pod, Outcome.SCHEDULED, node_name, "", (*updates, bind) if updates else (bind,))

    # A pod is not scheduled.

    def _unschedulable(
        self,
        queued: QueuedPod,
        profile: Profile,
        plan: Plan,
        result: ScheduleResult,
        cycle_state: CycleState,
        now_ns: int,
    ) -> CycleReport:
        """End a cycle that found no node: try PostFilter, record, and give the pod back to the queue."""
        failure = result.failure or error("no node was chosen")
        found: PostFilterResult | None = PostFilterResult("")
        if result.diagnosis is not None:
            if profile.post_filter:
                found, _ = self.run_post_filter_plugins(profile, queued.pod, result.diagnosis, cycle_state)
            failure = replace(failure, reasons=(result.diagnosis.message(),))
        outcome = Outcome.UNSCHEDULABLE if failure.code.rejects else Outcome.ERROR
        nominated = (found.nominated_node_name or "") if found is not None else ""
        victims = tuple(found.victims) if found is not None else ()
        message = failure.message
        self._record(queued, outcome, plan, result, now_ns, message=message, nominated=nominated, victims=victims)
        rejecting = result.diagnosis.unschedulable_plugins if result.diagnosis is not None else ()
        actions = self._handle_scheduling_failure(queued, failure, rejecting, found, now_ns)
        return CycleReport(queued.pod, outcome, "", failure.message, actions)

    def run_post_filter_plugins(
        self, profile: Profile, pod: Pod, diagnosis: Diagnosis, cycle_state: CycleState
    ) -> tuple[PostFilterResult | None, Status]:
        """Ask the PostFilter plugins until one makes room or says that nothing helps; the diagnosis takes over the message."""
        found: PostFilterResult | None = None
        reasons: list[str] = []
        status, rejector = Status(Code.UNSCHEDULABLE), ""
        for plugin in profile.post_filter:
            answer, status = plugin.post_filter(pod, diagnosis, cycle_state)
            if status.ok or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
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
        return found, Status(Code.UNSCHEDULABLE, tuple(reasons), rejector)

    def _handle_scheduling_failure(
        self,
        queued: QueuedPod,
        failure: Status,
        rejecting: Sequence[str],
        found: PostFilterResult | None,
        now_ns: int,
        pending: Sequence[str] = (),
    ) -> list[Action]:
        nominating = None
        if found is not None and found.nominated_node_name is not None:
            nominating = NominatingInfo(NominatingMode.OVERRIDE, found.nominated_node_name)
        known = self.pods.get(queued.key)
        self.queue.fail(
            queued,
            now_ns,
            unschedulable_plugins=frozenset(rejecting),
            pending_plugins=frozenset(pending),
            nominating=nominating,
        )
        if known is not None and not known.spec.node_name and uid_of(known) != queued.uid:
            # Another pod of the same name has come in between; nothing is said about it.
            return []
        pod = queued.pod
        actions: list[Action] = []
        note = failure.message
        if len(note) > MAX_EVENT_NOTE:
            note = note[: MAX_EVENT_NOTE - 4] + " ..."
        actions.append(Emit(pod, "Warning", "FailedScheduling", "Scheduling", note))
        reason = "Unschedulable" if failure.code.rejects else "SchedulerError"
        actions.append(SetCondition(pod, reason, failure.message))
        if nominating is not None and nominating.node_name != pod.status.nominated_node_name:
            actions.append(Nominate(pod, nominating.node_name))
        if found is not None and found.nominated_node_name:
            actions += self._actuate_preemption(pod, found, now_ns)
        return actions

    def _actuate_preemption(self, preemptor: Pod, found: PostFilterResult, now_ns: int) -> list[Action]:
        """Make room: nominations of lower priority end, victims go. One that only waits for a permit is refused it instead."""
        node_name = found.nominated_node_name or ""
        actions: list[Action] = []
        for key in found.nominations_to_clear:
            other = self.pods.get(key)
            if other is not None:
                self.queue.unnominate(other)
                actions.append(Nominate(other, ""))
        for key in found.victims:
            victim = self.pods.get(key)
            if victim is None or victim.metadata.deletion_timestamp is not None:
                continue
            note = f"Preempted by pod {uid_of(preemptor)} on node {node_name}"
            if self.waiting_pods.get(key) is not None:
                actions += self.reject_waiting_pod(key, error("waiting on permit for pod: preempted"), now_ns)
                note += " (in kube-scheduler memory)."
            else:
                actions.append(Evict(victim, preemptor, node_name))
            actions.append(Emit(victim, "Normal", "Preempted", "Preempting", note))
        return actions

    def preemption_failed(self, pod: Pod, now_ns: int) -> None:
        """Note that the host could not carry out the evictions for a pod: it no longer waits for them, and is tried again."""
        profile = self.profiles.get(pod.spec.scheduler_name)
        for plugin in profile.pre_enqueue if profile is not None else ():
            plugin.stop_waiting(pod)
        self.queue.activate([pod], now_ns)

    def _rolled_back(
        self,
        queued: QueuedPod,
        profile: Profile,
        cycle_state: CycleState,
        node_name: str,
        status: Status,
        now_ns: int,
    ) -> CycleReport:
        """Take an assumed pod off its node again, after Reserve or Permit failed. To others it never was there."""
        self._unreserve_and_forget(queued, profile, cycle_state, node_name)
        return self._given_back(queued, status, now_ns, rejected=status.code.rejects)

    def _binding_failed(
        self,
        queued: QueuedPod,
        profile: Profile,
        cycle_state: CycleState,
        node_name: str,
        status: Status,
        now_ns: int,
        *,
        waited: bool = False,
    ) -> CycleReport:
        """Take an assumed pod off its node again, after a wait for a permit, PreBind or Bind failed.

        To others it leaves the node, which may help them. It waits for an event itself only where a permit was refused it; what
        PreBind and Bind say is tried again after a backoff.
        """
        pod, uid = queued.pod, queued.uid
        assumed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node_name))
        self._unreserve_and_forget(queued, profile, cycle_state, node_name)
        if not status.code.rejects:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None, now_ns)
            return self._given_back(queued, status, now_ns)
        report = self._given_back(queued, status, now_ns, rejected=waited)
        self.queue.move_all(ASSIGNED_POD_DELETE, assumed, None, now_ns, lambda other: uid_of(other) != uid)
        return report

    def _unreserve_and_forget(
        self, queued: QueuedPod, profile: Profile, cycle_state: CycleState, node_name: str
    ) -> None:
        for reserver in reversed(profile.reserve):
            reserver.unreserve(cycle_state, queued.pod, node_name)
        self.forget(queued.key)

    def _given_back(self, queued: QueuedPod, status: Status, now_ns: int, *, rejected: bool = False) -> CycleReport:
        """Give a pod whose node was taken back to the queue; `rejected`: it waits for an event of the plugin that said so."""
        outcome = Outcome.UNSCHEDULABLE if status.code.rejects else Outcome.ERROR
        message, rejecting, pending = status.message, tuple[str, ...](), tuple[str, ...]()
        if rejected:
            message = f"0/1 nodes are available:{told_reasons(Counter(status.reasons))}"
            rejecting = (status.plugin,)
            pending = rejecting if status.code is Code.PENDING else ()
        self._record(queued, outcome, None, None, now_ns, message=message)
        failure = Status(status.code, (message,), status.plugin)
        pod = queued.pod
        actions = self._handle_scheduling_failure(queued, failure, rejecting, PostFilterResult(""), now_ns, pending)
        return CycleReport(pod, outcome, "", message, actions)

    def forget(self, key: str) -> None:
        """Take an assumed pod off its node, where it still is there."""
        if self.assumed.pop(key, 0) is None and key in self.state.pods:
            self.state.remove_pod(key)

    # Permit.

    def allow_waiting_pod(self, key: str, plugin: str, now_ns: int) -> Sequence[Action]:
        """Note that a Permit plugin lets a waiting pod go on; bind it when all have."""
        waiting = self.waiting_pods.get(key)
        if waiting is None:
            return ()
        waiting.deadlines.pop(plugin, None)
        if waiting.deadlines:
            return ()
        self.waiting_pods.remove(key)
        profile = self.profiles[waiting.pod.spec.scheduler_name]
        return self._bind(waiting.queued, profile, waiting.cycle_state, waiting.node_name, now_ns).actions

    def reject_waiting_pod(self, key: str, status: Status, now_ns: int) -> Sequence[Action]:
        """Refuse a waiting pod: it gives its node back and returns to the queue."""
        waiting = self.waiting_pods.remove(key)
        if waiting is None:
            return ()
        profile = self.profiles[waiting.pod.spec.scheduler_name]
        if not status.reasons:
            status = unschedulable("pod was rejected while waiting on permit")
        return self._binding_failed(
            waiting.queued, profile, waiting.cycle_state, waiting.node_name, status, now_ns, waited=True
        ).actions

    # Records.

    def _record(
        self,
        queued: QueuedPod,
        outcome: Outcome,
        plan: Plan | None,
        result: ScheduleResult | None,
        now_ns: int,
        *,
        node: str = "",
        message: str = "",
        nominated: str = "",
        victims: tuple[str, ...] = (),
    ) -> None:
        self.records.add(
            time_ns=now_ns,
            pod=queued.key,
            attempt=queued.attempts,
            outcome=outcome,
            node=node,
            message=message,
            nominated_node=nominated,
            plan=plan,
            result=result,
            victims=victims,
        )


def _run_bind_plugins(profile: Profile, cycle_state: CycleState, pod: Pod, node_name: str) -> Status:
    """Ask the Bind plugins until one takes the pod."""
    for plugin in profile.bind:
        status = plugin.bind(cycle_state, pod, node_name)
        if status.code is not Code.SKIP:
            return status if status.ok else _rejected_or_error(status, plugin.name, "Bind")
    return error("no bind plugin bound the pod")


def _rejected_or_error(status: Status, plugin: str, point: str) -> Status:
    if status.code.rejects:
        return status.by(plugin)
    return error(f'running {point} plugin "{plugin}": {status.message}').by(plugin)
