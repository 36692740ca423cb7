"""The status of a pod during its lifecycle, as kubelet and API server write it: bound, running, finished.

Pods that reach the same state within the same second share the parts of their statuses, to save time and memory for
every pod of a simulation. Time only moves forward, so few parts are kept for later pods.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from bayplan.objects.pod import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    Pod,
    PodCondition,
    PodStatus,
)
from bayplan.objects.requests import is_sidecar

_MAX_KEPT = 64
"""Maximum number of parts of each kind that are kept for later pods."""

_LIFE_CYCLE = frozenset(("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"))
_ENDED = frozenset(("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"))


@lru_cache(maxsize=_MAX_KEPT)
def _scheduled(timestamp: str) -> tuple[PodCondition, ...]:
    return (PodCondition(type="PodScheduled", status="True", last_transition_time=timestamp),)


@lru_cache(maxsize=_MAX_KEPT)
def _running(timestamp: str, scheduled_at: str, ready: bool) -> tuple[PodCondition, ...]:
    return (
        PodCondition(type="PodReadyToStartContainers", status="True", last_transition_time=timestamp),
        PodCondition(type="Initialized", status="True", last_transition_time=timestamp),
        PodCondition(
            type="Ready",
            status="True" if ready else "False",
            reason="" if ready else "ReadinessGatesNotReady",
            last_transition_time=timestamp,
        ),
        PodCondition(type="ContainersReady", status="True", last_transition_time=timestamp),
        *_scheduled(scheduled_at),
    )


@lru_cache(maxsize=_MAX_KEPT)
def _ended(timestamp: str, started_at: str, reason: str) -> tuple[PodCondition, ...]:
    # A pod that ends stays Initialized since its start; its other conditions become false.
    return (
        PodCondition(type="PodReadyToStartContainers", status="False", last_transition_time=timestamp),
        PodCondition(
            type="Initialized",
            status="True",
            reason=reason if reason == "PodCompleted" else "",
            last_transition_time=started_at,
        ),
        PodCondition(type="Ready", status="False", reason=reason, last_transition_time=timestamp),
        PodCondition(type="ContainersReady", status="False", reason=reason, last_transition_time=timestamp),
    )


def bound_status(pod: Pod, timestamp: str) -> PodStatus:
    """Return the status of a pod that has just been bound: scheduled, and no longer nominated."""
    status = pod.status
    conditions = _scheduled(timestamp)
    others = tuple(condition for condition in status.conditions if condition.type != "PodScheduled")
    return replace(
        status, phase="Pending", nominated_node_name="", conditions=others + conditions if others else conditions
    )


def running_status(pod: Pod, timestamp: str, *, container_statuses: bool) -> PodStatus:
    """Return the status of a bound pod whose containers have all started.

    Args:
        pod: the pod.
        timestamp: the time when they started.
        container_statuses: whether to list the containers (``kubectl get`` counts them; scheduling does not).
    """
    new = _running_status(pod, timestamp)
    if container_statuses:
        new = replace(
            new,
            container_statuses=_running_containers(pod.spec.containers, timestamp),
            init_container_statuses=_initialized_containers(pod.spec.init_containers, timestamp, None),
        )
    return new


def ended_status(pod: Pod, timestamp: str, exit_code: int, *, container_statuses: bool) -> PodStatus:
    """Return the status of a pod whose containers ended: Succeeded for exit code 0, Failed for any other exit code."""
    new = _ended_status(pod, timestamp, exit_code)
    if container_statuses:
        started_at = pod.status.start_time or timestamp
        new = replace(
            new,
            container_statuses=_ended_containers(pod.spec.containers, started_at, timestamp, exit_code),
            init_container_statuses=_initialized_containers(pod.spec.init_containers, started_at, timestamp),
        )
    return new


def _running_status(pod: Pod, timestamp: str) -> PodStatus:
    status = pod.status
    scheduled_at = timestamp
    others: tuple[PodCondition, ...] = ()
    for condition in status.conditions:
        if condition.type not in _LIFE_CYCLE:
            others += (condition,)
        elif condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
            scheduled_at = condition.last_transition_time
    ready = True
    if pod.spec.readiness_gates:
        gates = {gate.condition_type for gate in pod.spec.readiness_gates}
        ready = gates <= {condition.type for condition in others if condition.status == "True"}
    conditions = _running(timestamp, scheduled_at, ready)
    return replace(
        status,
        phase="Running",
        nominated_node_name="",
        conditions=others + conditions if others else conditions,
        start_time=timestamp,
    )


def _ended_status(pod: Pod, timestamp: str, exit_code: int) -> PodStatus:
    status = pod.status
    reason = "PodCompleted" if exit_code == 0 else "PodFailed"
    others = tuple([condition for condition in status.conditions if condition.type not in _ENDED])
    return replace(
        status,
        phase="Succeeded" if exit_code == 0 else "Failed",
        nominated_node_name="",
        conditions=_ended(timestamp, status.start_time or timestamp, reason) + others,
    )


def with_condition(status: PodStatus, condition: PodCondition) -> PodStatus:
    """Return a status with a condition replaced or appended; the same status if the condition is already equal.

    A condition whose status does not change keeps its transition time, as in the API machinery.
    """
    for index, present in enumerate(status.conditions):
        if present.type != condition.type:
            continue
        if present.status == condition.status:
            condition = replace(condition, last_transition_time=present.last_transition_time)
        if present == condition:
            return status
        conditions = (*status.conditions[:index], condition, *status.conditions[index + 1 :])
        return replace(status, conditions=conditions)
    return replace(status, conditions=(*status.conditions, condition))


def _running_containers(containers: tuple[Container, ...], timestamp: str) -> tuple[ContainerStatus, ...]:
    state = ContainerState(running=ContainerStateRunning(started_at=timestamp))
    return tuple(ContainerStatus(name=item.name, state=state, ready=True, started=True) for item in containers)


def _initialized_containers(
    containers: tuple[Container, ...], started_at: str, ended_at: str | None
) -> tuple[ContainerStatus, ...]:
    """Return the statuses of init containers, which end when the pod starts, except sidecars, which end with the pod."""
    statuses: tuple[ContainerStatus, ...] = ()
    for item in containers:
        if is_sidecar(item):
            one = _running_containers((item,), started_at) if ended_at is None else ()
            statuses += one or _ended_containers((item,), started_at, ended_at or started_at, 0)
        else:
            done = _ended_containers((item,), started_at, started_at, 0)
            statuses += (replace(done[0], ready=True),)
    return statuses


def _ended_containers(
    containers: tuple[Container, ...], started_at: str, timestamp: str, exit_code: int
) -> tuple[ContainerStatus, ...]:
    terminated = ContainerStateTerminated(
        exit_code=exit_code,
        reason="Completed" if exit_code == 0 else "Error",
        started_at=started_at,
        finished_at=timestamp,
    )
    state = ContainerState(terminated=terminated)
    return tuple(ContainerStatus(name=item.name, state=state, started=False) for item in containers)
