"""The engine's actions as exchanges: sequences of API requests in which each depends on the response to the previous request.

An exchange is a generator; see `bayplan.client.request_steps`. Exchanges of different pods may run concurrently; exchanges
of one pod must run in order. An `ExchangeHost` receives their outcomes, and reports them to the engine. The requests and
their order are those of kube-scheduler v1.36.3.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from msgspec import Struct, structs

from bayplan.client.claim_writes import (
    deallocate_claim,
    record_claim_in_status,
    release_claim,
    wait_for_devices,
    write_claim,
)
from bayplan.client.event_recorder import PodEvent
from bayplan.client.pod_status import disruption_condition, status_patch, unscheduled_condition
from bayplan.client.pre_bind import PREEMPTED, BindLimits, PreBind
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import (
    NO_ANSWER,
    ApiResponse,
    binding_request,
    delete_request,
    pod_status_request,
)
from bayplan.client.volume_writes import WrittenItem, wait_for_claims, write_item
from bayplan.engine.actions import IN_MEMORY, Action, Bind, Emit, Evict, Nominate, SetCondition, Update
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.objects.storage import PersistentVolume
from bayplan.plugins.dynamic_resources.claim_binding import is_awaited

_RETRIED = (409, 500, 503, NO_ANSWER)
_RETRY_SECONDS = (0.01, 0.05, 0.25)
"""Intervals between retries of a status patch."""

_NOT_FOUND = 404


class ExchangeHost(ObjectLookup, Protocol):
    """Receives the outcomes of exchanges, and has the cached objects. Called while an exchange is driven."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since 1970."""
        ...

    def record_event(self, event: PodEvent) -> None:
        """Record an event."""
        ...

    def bind_limits(self, pod: Pod) -> BindLimits:
        """Return how long a pod waits for its volumes and devices."""
        ...

    def binding_failed(self, pod: Pod, message: str, *, plugin: str, point: str) -> None:
        """Handle a failed binding; see `bayplan.engine.scheduler.Scheduler.binding_failed`."""
        ...

    def binding_written(self, pod: Pod) -> None:
        """Handle a binding that the API, or an extender, has accepted."""
        ...

    def cancel_pre_bind(self, pod: Pod) -> bool:
        """Cancel the PreBind phase of a pod's binding; return False if the pod is not in this phase."""
        ...

    def preemption_failed(self, pod: Pod) -> None:
        """Handle a failed eviction of victims; see `Scheduler.preemption_failed`."""
        ...


class Exchange(Struct, gc=False):
    """A sequence of requests about one pod.

    Attributes:
        pod: the pod; exchanges of one pod run one at a time.
        steps: the generator.
        is_binding: whether the exchange binds the pod; others report a status or evict victims.
        pre_bind: the PreBind phase of a binding that writes other objects first; None if there is none.
    """

    pod: Pod
    steps: RequestSteps[None]
    is_binding: bool = False
    pre_bind: PreBind | None = None


def exchanges_of(actions: Sequence[Action], host: ExchangeHost) -> list[Exchange]:
    """Return the exchanges of a list of actions. Events that depend on no request are passed to the host immediately.

    Args:
        actions: all actions that one call of the scheduler returned; related actions are found by their order.
        host: receives the outcomes, now and later.
    """
    return list(_exchanges(actions, host))


def _exchanges(actions: Sequence[Action], host: ExchangeHost) -> Generator[Exchange, None, None]:
    place = 0
    while place < len(actions):
        action = actions[place]
        end = place + 1
        if isinstance(action, Emit):
            host.record_event(_pod_event(action, action.pod.spec.scheduler_name))
        elif isinstance(action, Evict):
            end = _end_of_evictions(actions, place, action.preemptor)
            victims = [item for item in actions[place:end] if isinstance(item, Evict)]
            notes = {item.pod.key: item for item in actions[place:end] if isinstance(item, Emit)}
            for note in notes.values():
                if all(victim.pod.key != note.pod.key for victim in victims):
                    host.record_event(_pod_event(note, action.preemptor.spec.scheduler_name))
            yield Exchange(action.preemptor, _evict(action.preemptor, victims, notes, host))
        elif isinstance(action, SetCondition):
            following = actions[end] if end < len(actions) else None
            nominated = None
            if isinstance(following, Nominate) and following.pod is action.pod:
                nominated = following.node_name
                end += 1
            yield Exchange(action.pod, _write_status(action, nominated, host))
        else:
            end = _end_of_binding(actions, place)
            group = actions[place:end]
            last = group[-1]
            if isinstance(last, Bind):
                # An extender has already bound its pod, which can only be deleted.
                writes = not last.extender and any(isinstance(item, Update) for item in group)
                pre_bind = PreBind(limits=host.bind_limits(last.pod)) if writes else None
                steps = _bind(group, last, pre_bind or PreBind(), host)
                yield Exchange(last.pod, steps, is_binding=True, pre_bind=pre_bind)
            elif isinstance(action, Nominate):
                end = place + 1
                yield Exchange(action.pod, _nominate(action, host))
            elif isinstance(action, Update) and isinstance(action.item, ResourceClaim):
                end = place + 1
                yield Exchange(action.pod, _give_up(action.item))
        place = end


def _end_of_evictions(actions: Sequence[Action], start: int, preemptor: Pod) -> int:
    """Return the index after the evictions for one preemptor, including their events."""
    end = start
    while end < len(actions):
        action = actions[end]
        if not (
            (isinstance(action, Evict) and action.preemptor is preemptor)
            or (isinstance(action, Emit) and action.reason == "Preempted")
        ):
            break
        end += 1
    return end


def _end_of_binding(actions: Sequence[Action], start: int) -> int:
    """Return the index after the actions of one pod's binding: nomination, updates, and Bind."""
    pod_key = actions[start].pod.key
    end = start
    while end < len(actions):
        action = actions[end]
        if action.pod.key != pod_key or not isinstance(action, Bind | Update | Nominate):
            break
        end += 1
        if isinstance(action, Bind):
            break
    return end


def _pod_event(emitted: Emit, controller: str) -> PodEvent:
    return PodEvent(emitted.pod, emitted.type, emitted.reason, emitted.action, emitted.note, controller)


# Functions that return the steps of an exchange.


def _bind(group: Sequence[Action], bind: Bind, pre_bind: PreBind, host: ExchangeHost) -> RequestSteps[None]:
    """Write the nomination and the objects that the pod needs, wait until these are ready, and bind the pod.

    A preemption can cancel it until the pod is bound. A request in progress is completed first.
    """
    pod = bind.pod
    volumes: list[WrittenItem] = []
    claims: list[ResourceClaim] = []
    for action in group:
        if isinstance(action, Nominate):
            # Like upstream, bind the pod even if this fails.
            yield from _nominate(action, host)
        elif isinstance(action, Update) and isinstance(action.item, ResourceClaim):
            claims.append(action.item)
        elif isinstance(action, Update):
            volumes.append(WrittenItem(action.item))
    problem = yield from _bind_volumes(bind, volumes, pre_bind, host)
    if problem:
        host.binding_failed(pod, problem, plugin="VolumeBinding", point="PreBind")
        return
    written: list[ResourceClaim] = []
    problem = yield from _bind_claims(bind, claims, written, pre_bind, host)
    if problem:
        yield from _release(pod, written)
        host.binding_failed(pod, problem, plugin="DynamicResources", point="PreBind")
        return
    pre_bind.finish()
    if bind.extender:
        # The extender has already bound the pod.
        host.binding_written(pod)
        return
    response = yield binding_request(pod, bind.node_name)
    if not response.ok:
        yield from _release(pod, written)
        host.binding_failed(pod, response.message, plugin="DefaultBinder", point="Bind")
        return
    host.binding_written(pod)


def _bind_volumes(bind: Bind, volumes: list[WrittenItem], pre_bind: PreBind, host: ExchangeHost) -> RequestSteps[str]:
    # Write volumes before claims; `wait_for_claims` checks them in the same order.
    volumes.sort(key=lambda written: not isinstance(written.item, PersistentVolume))
    for written in volumes:
        if pre_bind.is_canceled:
            return PREEMPTED
        problem = yield from write_item(written, host)
        if problem:
            return problem
    return (yield from wait_for_claims(bind.pod, bind.node_name, volumes, host, pre_bind)) if volumes else ""


def _bind_claims(
    bind: Bind, claims: Sequence[ResourceClaim], written: list[ResourceClaim], pre_bind: PreBind, host: ExchangeHost
) -> RequestSteps[str]:
    """Write the claims, append those that the pod uses then to `written`, and wait for their devices."""
    for claim in claims:
        if pre_bind.is_canceled:
            return PREEMPTED
        problem = yield from write_claim(claim)
        # A new claim may exist although its allocation could not be written.
        if not problem or not claim.metadata.uid:
            written.append(claim)
        problem = problem or (yield from record_claim_in_status(bind.pod, claim))
        if problem:
            return problem
    if pre_bind.is_canceled:
        return PREEMPTED
    if not any(map(is_awaited, claims)):
        return ""
    note = f"waiting for binding conditions for device on node {bind.node_name}"
    pod = bind.pod
    host.record_event(PodEvent(pod, "Normal", "BindingConditionsPending", "Scheduling", note, pod.spec.scheduler_name))
    return (yield from wait_for_devices(claims, host, host.now_ns, pre_bind))


def _release(pod: Pod, written: Sequence[ResourceClaim]) -> RequestSteps[None]:
    """Release the claims of a pod that could not be bound. If this fails, the pod is only retried."""
    for claim in written:
        yield from release_claim(claim, pod)


def _write_status(action: SetCondition, nominated: str | None, host: ExchangeHost) -> RequestSteps[None]:
    """Write the condition of a pod that was not scheduled, and its nomination, in one patch."""
    condition = unscheduled_condition(action.pod, action.reason, action.message)
    patch = status_patch(action.pod, host.now_ns(), condition=condition, nominated_node_name=nominated)
    yield from _patch_status(action.pod, patch)


def _give_up(claim: ResourceClaim) -> RequestSteps[None]:
    # If this fails, the pod is retried when the claim changes.
    yield from deallocate_claim(claim)


def _nominate(action: Nominate, host: ExchangeHost) -> RequestSteps[None]:
    patch = status_patch(action.pod, host.now_ns(), nominated_node_name=action.node_name)
    yield from _patch_status(action.pod, patch)


def _patch_status(pod: Pod, patch: dict[str, object] | None) -> RequestSteps[ApiResponse | None]:
    """Patch a pod's status, with retries if the server is unavailable.

    Return the last response, or None without a patch.
    """
    if patch is None:
        return None
    request = pod_status_request(pod, patch)
    response = yield request
    for seconds in _RETRY_SECONDS:
        if response.ok or response.status not in _RETRIED:
            break
        yield seconds
        response = yield request
    return response


def _evict(preemptor: Pod, victims: Sequence[Evict], notes: dict[str, Emit], host: ExchangeHost) -> RequestSteps[None]:
    """Evict the victims of a preemption one after the other: write the condition, delete the pod, record the event.

    A victim in its PreBind phase is not deleted, except by the classic scheduler: its binding is canceled, and it returns
    to the queue. A victim that no longer exists counts as evicted. Any other failure ends the exchange, and the preemptor
    is retried.
    """
    for victim in victims:
        pod = victim.pod
        emitted = notes.get(pod.key)
        if victim.cancels_pre_bind and host.cancel_pre_bind(pod):
            if emitted is not None:
                emitted = structs.replace(emitted, note=emitted.note + IN_MEMORY)
                host.record_event(_pod_event(emitted, preemptor.spec.scheduler_name))
            continue
        patch = status_patch(pod, host.now_ns(), condition=disruption_condition(pod, preemptor))
        response = yield from _patch_status(pod, patch)
        if response is None or response.ok:
            response = yield delete_request(pod)
        if response.status == _NOT_FOUND:
            continue
        if not response.ok:
            host.preemption_failed(preemptor)
            return
        if emitted is not None:
            host.record_event(_pod_event(emitted, preemptor.spec.scheduler_name))
