"""Pods, queueing hints and PreEnqueue plugins for tests of the queue."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.engine.queue import PreEnqueue, QueueOptions, SchedulingQueue
from bayplan.engine.queued_pod import QueuedPod
from bayplan.framework.events import NODE_ADD, ActionType, ClusterEvent, EventResource, Registration
from bayplan.framework.status import Status, unresolvable
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod, PodSchedulingGate, PodSpec, PodStatus, Toleration

SECOND = 1_000_000_000
PROFILE = "default-scheduler"
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
P, Q = frozenset("P"), frozenset("Q")
P_WAITS_FOR_NODES: Registration = (NODE_ADD, "P", None)


def pod(
    name: str,
    *,
    priority: int | None = None,
    version: str = "1",
    uid: str | None = None,
    scheduler: str = PROFILE,
    node: str = "",
    nominated: str = "",
    gates: tuple[str, ...] = (),
    tolerations: int = 0,
    **labels: str,
) -> Pod:
    """Return a pod in the namespace ``default``."""
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}" if uid is None else uid,
            resource_version=version,
            labels=labels,
        ),
        spec=PodSpec(
            priority=priority,
            scheduler_name=scheduler,
            node_name=node,
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            tolerations=tuple(Toleration(key=f"k{number}") for number in range(tolerations)),
        ),
        status=PodStatus(nominated_node_name=nominated),
    )


def queue_of(*arguments: Registration, **options: int | bool) -> tuple[SchedulingQueue, dict[str, Pod]]:
    """Return a queue with registrations and without PreEnqueue plugins, and the dict that its pod lister reads."""
    known: dict[str, Pod] = {}
    return SchedulingQueue({PROFILE: arguments}, {}, known.get, options=QueueOptions(**options)), known  # type: ignore[arg-type]


def gate(passes: Callable[[Pod], bool]) -> PreEnqueue:
    """Return a PreEnqueue function that lets the pods pass for which `passes` returns true."""

    def pre_enqueue(pod: Pod) -> Status | None:
        return None if passes(pod) else unresolvable("held back")

    return pre_enqueue


def no_scheduling_gates(pod: Pod) -> bool:
    """Return whether the pod has no scheduling gates."""
    return not pod.spec.scheduling_gates


def names(queued: list[QueuedPod]) -> str:
    return "".join(each.pod.metadata.name for each in queued)


def places(queue: SchedulingQueue) -> dict[str, str]:
    """Return the names of the pods in each non-empty part of the queue."""
    queue.check_invariants()
    in_flight = [each for each in queue.in_flight() if isinstance(each, QueuedPod)]
    found = {
        "active": names(queue.active()),
        "backoff": names(queue.backing_off()),
        "unschedulable": names(queue.unschedulable()),
        "in flight": names(in_flight),
    }
    return {place: pods for place, pods in found.items() if pods}


def popped(queue: SchedulingQueue) -> QueuedPod:
    queued = queue.pop()
    assert queued is not None
    return queued


def rejected(*registrations: Registration, plugins: frozenset[str] = P, **options: int | bool) -> SchedulingQueue:
    """Return a queue in which the pod ``a`` was rejected by `plugins` at 100 ns."""
    queue, known = queue_of(*registrations, **options)
    known["default/a"] = pod("a")
    queue.add(pod("a"), 0)
    queue.fail(popped(queue), 100, unschedulable_plugins=plugins)
    return queue


def gated(**options: int | bool) -> SchedulingQueue:
    """Return a queue in which the pod ``a`` has a scheduling gate."""
    event = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    queue = SchedulingQueue(
        {PROFILE: [(event, "SchedulingGates", None), P_WAITS_FOR_NODES]},
        {PROFILE: [("SchedulingGates", gate(no_scheduling_gates))]},
        {"default/a": pod("a")}.get,
        options=QueueOptions(**options),  # type: ignore[arg-type]
    )
    queue.add(pod("a", gates=("g",)), 0)
    return queue
