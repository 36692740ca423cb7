"""The binding cycle: Reserve, Permit and its wait, PreBind, Bind, PostBind, and the rollback if one of them fails.

If a step fails, the pod releases its node and returns to the queue. Reserve and Permit can reject it as unschedulable;
a failure of PreBind or Bind is retried after a backoff.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from bayplan.base.durations import MINUTE_NS
from bayplan.base.errors import PluginFailure
from bayplan.engine.actions import Action, Bind, CycleReport, Emit, Nominate, Update
from bayplan.engine.extenders import bind_by_extenders
from bayplan.engine.queued_pod import QueuedPod, uid_of
from bayplan.engine.records import Outcome
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import PostFilterResult, format_reasons
from bayplan.framework.events import ASSIGNED_POD_DELETE
from bayplan.framework.profile import Profile
from bayplan.framework.status import SUCCESS, Code, Status, error, unschedulable
from bayplan.framework.waiting_pods import WaitingPod
from bayplan.objects.pod import Pod

if TYPE_CHECKING:
    from bayplan.engine.plan import Plan
    from bayplan.engine.scheduler import Scheduler

_SCHEDULED, _WAIT = Outcome.SCHEDULED, Code.WAIT

MAX_PERMIT_TIMEOUT_NS = 15 * MINUTE_NS
"""Longest wait at Permit; longer timeouts of plugins are cut to it, as upstream does."""


class Binding:
    """A pod that is assumed on its node and not bound yet. A plain class, whose fields compiled code reads directly.

    Attributes:
        reserve, pre_bind: the plugins of the plan that must run for the pod.
    """

    def __init__(self, queued: QueuedPod, plan: Plan, cycle_state: CycleState, node_name: str) -> None:
        self.queued = queued
        self.profile: Profile = plan.profile
        self.reserve = plan.reserve
        self.pre_bind = plan.pre_bind
        self.cycle_state = cycle_state
        self.node_name = node_name


class BindingCycle:
    """Runs the binding cycles of a scheduler's assumed pods.

    Args:
        scheduler: the scheduler that assumed the pods.
        nominates_expected: the gate NominatedNodeNameForExpectation: nominate a pod for its node while it waits at
            Permit, or if a PreBind plugin has something to write.

    Attributes:
        waiting: bindings of the pods that wait at Permit, by pod key.
        pending: bindings requested from the host, by pod key. An entry stays until the cluster reports the pod as bound
            or the host reports a failure, even if the pod is being deleted or its node has been deleted.
    """

    def __init__(self, scheduler: Scheduler, *, nominates_expected: bool) -> None:
        self.waiting: dict[str, Binding] = {}
        self.pending: dict[str, Binding] = {}
        self._scheduler = scheduler
        self._queue = scheduler.queue
        self._nominates_expected = nominates_expected

    def begin(self, binding: Binding, now_ns: int) -> CycleReport:
        """Run the binding cycle of a newly assumed pod until the host must act or the pod must wait at Permit."""
        status = self._reserve_and_permit(binding, now_ns)
        if status is not SUCCESS and not status.ok and status.code is not _WAIT:
            # No other pod was scheduled since this one was assumed, so releasing its node can't help any.
            self._unreserve_and_forget(binding)
            return self.requeue(binding.queued, status, now_ns, rejected=status.code.rejects)
        self._activate_pods(binding.cycle_state, now_ns)
        if status is not SUCCESS and status.code is _WAIT:
            return CycleReport(binding.queued.pod, _SCHEDULED, binding.node_name, "", self._expect(binding))
        return self._bind(binding, now_ns)

    def _reserve_and_permit(self, binding: Binding, now_ns: int) -> Status:
        queued, profile = binding.queued, binding.profile
        cycle_state, node_name = binding.cycle_state, binding.node_name
        pod = queued.pod
        for reserver in binding.reserve:
            status = reserver.reserve(cycle_state, pod, node_name)
            if status is not SUCCESS and not status.ok:
                self._scheduler.records.report(queued.key, "Reserve", reserver.name, status)
                return rejected_or_error(status, reserver.name, "Reserve")
        timeouts: dict[str, int] = {}
        for permitter in profile.permit:
            status, timeout_ns = permitter.permit(cycle_state, pod, node_name)
            if status is SUCCESS:
                continue
            self._scheduler.records.report(queued.key, "Permit", permitter.name, status, timeout_ns)
            if status.code is _WAIT:
                timeouts[permitter.name] = min(timeout_ns, MAX_PERMIT_TIMEOUT_NS)
            elif not status.ok:
                return rejected_or_error(status, permitter.name, "Permit")
        if timeouts:
            deadlines = {plugin: now_ns + timeout_ns for plugin, timeout_ns in timeouts.items()}
            self.waiting[queued.key] = binding
            self._scheduler.waiting_pods.add(WaitingPod(queued.key, pod, node_name, deadlines, timeouts))
            return Status(Code.WAIT)
        return SUCCESS

    def _activate_pods(self, cycle_state: CycleState, now_ns: int) -> None:
        pods = cycle_state.pods_to_activate
        if pods:
            cycle_state.pods_to_activate = ()
            self._queue.activate(pods, now_ns)

    def _expect(self, binding: Binding) -> Sequence[Action]:
        """Return the action that nominates a pod for its node until it is bound; empty if none is needed."""
        newest = self._scheduler.pods.get(binding.queued.key, binding.queued.pod)
        if not self._nominates_expected or newest.status.nominated_node_name == binding.node_name:
            return ()
        return (Nominate(newest, binding.node_name),)

    def _bind(self, binding: Binding, now_ns: int) -> CycleReport:
        """Run PreBind and Bind. Every failure in them is retried after a backoff, even if a plugin rejects the pod."""
        queued, profile = binding.queued, binding.profile
        cycle_state, node_name = binding.cycle_state, binding.node_name
        scheduler, pod = self._scheduler, queued.pod
        self._queue.done(queued.uid)
        updates: list[Action] = []
        for binder in binding.pre_bind:
            try:
                status = binder.pre_bind(cycle_state, pod, node_name)
                items = binder.updates(cycle_state) if status is SUCCESS or status.ok else ()
            except PluginFailure as problem:
                status, items = error(problem.text), ()
            if status is not SUCCESS and not status.ok:
                scheduler.records.report(queued.key, "PreBind", binder.name, status)
                return self.failed(binding, rejected_or_error(status, binder.name, "PreBind"), now_ns)
            if items:
                updates += [Update(pod, node_name, item) for item in items]
        extenders = scheduler.extenders
        extender, status = bind_by_extenders(extenders, pod, node_name) if extenders else ("", SUCCESS)
        if not extender:
            status = _run_bind_plugins(profile, cycle_state, pod, node_name)
        if extender or (status is not SUCCESS and not status.ok):
            scheduler.records.report(queued.key, "Bind", extender or status.plugin, status)
        if status is not SUCCESS and not status.ok:
            return self.failed(binding, status, now_ns)
        self.pending[queued.key] = binding
        bind = Bind(pod, node_name, extender)
        actions = (*self._expect(binding), *updates, bind) if updates else (bind,)
        return CycleReport(pod, _SCHEDULED, node_name, "", actions)

    def succeeded(self, key: str, pod: Pod, now_ns: int) -> list[Action]:
        """Finish the binding of a pod that is on its node in the cluster: run PostBind; return the Scheduled event.

        `pod` is the newest version. Return no actions if no binding of the pod was pending.
        """
        binding = self.pending.pop(key, None)
        if binding is None:
            return []
        cycle_state, node_name = binding.cycle_state, binding.node_name
        for plugin in binding.profile.post_bind:
            plugin.post_bind(cycle_state, pod, node_name)
        self._activate_pods(cycle_state, now_ns)
        note = f"Successfully assigned {binding.queued.key} to {node_name}"
        # As upstream, the event refers to the version that was scheduled.
        return [Emit(binding.queued.pod, "Normal", "Scheduled", "Binding", note)]

    # Rollback.

    def failed(self, binding: Binding, status: Status, now_ns: int, *, waited: bool = False) -> CycleReport:
        """Release the node of an assumed pod whose wait at Permit, PreBind or Bind failed; requeue it, and wake others.

        The pod itself waits for an event only if a plugin rejected it at Permit (`waited`).
        """
        queue, pod, uid = self._queue, binding.queued.pod, binding.queued.uid
        assumed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=binding.node_name))
        self._unreserve_and_forget(binding)
        if not status.code.rejects:
            queue.move_all(ASSIGNED_POD_DELETE, assumed, None, now_ns)
            return self.requeue(binding.queued, status, now_ns)
        report = self.requeue(binding.queued, status, now_ns, rejected=waited)
        queue.move_all(ASSIGNED_POD_DELETE, assumed, None, now_ns, lambda other: uid_of(other) != uid)
        return report

    def _unreserve_and_forget(self, binding: Binding) -> None:
        for reserver in reversed(binding.reserve):
            reserver.unreserve(binding.cycle_state, binding.queued.pod, binding.node_name)
        self._scheduler.forget(binding.queued.key)

    def requeue(self, queued: QueuedPod, status: Status, now_ns: int, *, rejected: bool = False) -> CycleReport:
        """Record the failed attempt, and requeue the pod, after a backoff or, if `rejected`, after an event."""
        scheduler = self._scheduler
        outcome = Outcome.UNSCHEDULABLE if status.code.rejects else Outcome.ERROR
        message, rejecting, pending = status.message, tuple[str, ...](), tuple[str, ...]()
        if rejected:
            message = f"0/1 nodes are available:{format_reasons(Counter(status.reasons))}"
            rejecting = (status.plugin,)
            pending = rejecting if status.code is Code.PENDING else ()
        scheduler.record(queued, outcome, None, None, now_ns, message=message)
        failure = Status(status.code, (message,), status.plugin)
        found = PostFilterResult("")
        actions = scheduler.handle_scheduling_failure(queued, failure, rejecting, found, now_ns, pending)
        return CycleReport(queued.pod, outcome, "", message, actions)

    # Waiting at Permit.

    def process_decided(self, now_ns: int) -> list[Action]:
        """Bind the waiting pods that every plugin allowed, and requeue those that were rejected."""
        scheduler = self._scheduler
        actions: list[Action] = []
        while (waiting := scheduler.waiting_pods.take_decided()) is not None:
            binding = self.waiting.pop(waiting.key)
            if waiting.rejection is None:
                actions += self._bind(binding, now_ns).actions
                continue
            status = waiting.rejection
            if not status.reasons:
                status = unschedulable("pod was rejected while waiting on permit")
            scheduler.records.report(waiting.key, "Permit", status.plugin, status)
            actions += self.failed(binding, status, now_ns, waited=True).actions
        return actions


def _run_bind_plugins(profile: Profile, cycle_state: CycleState, pod: Pod, node_name: str) -> Status:
    """Run the Bind plugins until one handles the pod; return its status, or an Error if none does."""
    for plugin in profile.bind:
        status = plugin.bind(cycle_state, pod, node_name)
        if status is SUCCESS:
            return status
        if status.code is not Code.SKIP:
            return status if status.ok else rejected_or_error(status, plugin.name, "Bind")
    return error("no bind plugin bound the pod")


def rejected_or_error(status: Status, plugin: str, point: str) -> Status:
    """Return an unsuccessful status with the plugin's name; an error gets upstream's text for the extension point."""
    if status.code.rejects:
        return status.by(plugin)
    return error(f'running {point} plugin "{plugin}": {status.message}').by(plugin)
