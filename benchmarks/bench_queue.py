"""The scheduling queue alone: adding and popping pods, events while pods wait, memory.

The hash is that of the pop order.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Iterator
from hashlib import sha256
from random import Random

from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.queued_pod import KeyFunction, QueuedPod, priority_sort
from bayplan.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    Registration,
)
from bayplan.framework.status import SUCCESS, Status
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Pod, PodSpec
from benchmarks import Figure

PROFILE = "default-scheduler"
START_NS = 1_700_000_000_000_000_000
PRIORITIES = (0, 0, 0, 100, 1000, -5)
MIX = (frozenset({"NodeResourcesFit"}), frozenset({"NodeResourcesFit", "NodeAffinity", "TaintToleration"}))


def make_pods(count: int, *, priorities: tuple[int, ...]) -> list[Pod]:
    random = Random(1)
    specs = {priority: PodSpec(scheduler_name=PROFILE, priority=priority) for priority in priorities}
    return [
        Pod(
            metadata=ObjectMeta(name=f"pod-{number}", namespace="default", uid=f"uid-{number}"),
            spec=specs[random.choice(priorities)],
        )
        for number in range(count)
    ]


def passes(pod: Pod) -> Status:
    return SUCCESS


def new_queue(
    registrations: list[Registration], pods: list[Pod], *, gates: int = 0, sort_key: KeyFunction = priority_sort
) -> SchedulingQueue:
    known = {f"default/{pod.metadata.name}": pod for pod in pods}
    return SchedulingQueue(
        {PROFILE: registrations},
        {PROFILE: [(f"G{number}", passes) for number in range(gates)]},
        known.get,
        sort_key=sort_key,
    )


def digest(order: list[QueuedPod]) -> str:
    return sha256("\n".join(queued.key for queued in order).encode()).hexdigest()[:16]


def add_and_pop(name: str, pods: list[Pod], *, gates: int = 0, sort_key: KeyFunction = priority_sort) -> Figure:
    """Add all pods and pop all pods; return the number per second."""
    queue = new_queue([], [], gates=gates, sort_key=sort_key)
    gc.collect()
    now_ns = START_NS
    start = time.perf_counter()
    for pod in pods:
        now_ns += 1000
        queue.add(pod, now_ns)
    order = []
    while (queued := queue.pop()) is not None:
        order.append(queued)
    seconds = time.perf_counter() - start
    return Figure(name=name, value=len(pods) / seconds, unit="pods/s", decisions_hash=digest(order))


def one_by_one(pods: list[Pod]) -> Figure:
    """Add, pop and finish one pod at a time, as in a cluster that keeps up with its pods."""
    queue = new_queue([], [], gates=3)
    now_ns, order = START_NS, []
    start = time.perf_counter()
    for pod in pods:
        now_ns += 1000
        queue.add(pod, now_ns)
        queued = queue.pop()
        assert queued is not None
        queue.done(queued.uid)
        order.append(queued)
    seconds = time.perf_counter() - start
    return Figure(
        name="add, pop, done, three gates", value=seconds / len(pods) * 1e6, unit="us/pod", decisions_hash=digest(order)
    )


def registrations() -> list[Registration]:
    """Return registrations with hints that skip.

    Every plugin registers nodes and deleted pods, but only InterPodAffinity, which rejects no pod here, registers added
    pods.
    """

    def skip(pod: Pod, old: object | None, new: object | None) -> bool:
        return False

    nodes = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
    gone = ClusterEvent(EventResource.POD, ActionType.DELETE)
    table: list[Registration] = [(event, plugin, skip) for plugin in sorted(MIX[1]) for event in (nodes, gone)]
    return [*table, (ASSIGNED_POD_ADD, "InterPodAffinity", skip)]


def rejected(pods: list[Pod]) -> tuple[SchedulingQueue, float]:
    """Return a queue in which all pods were rejected, and the seconds of popping and failing them."""
    queue = new_queue(registrations(), pods, gates=3)
    for number, pod in enumerate(pods):
        queue.add(pod, START_NS + number)
    now_ns = START_NS + len(pods)
    start = time.perf_counter()
    while (queued := queue.pop()) is not None:
        now_ns += 1000
        queue.fail(queued, now_ns, unschedulable_plugins=MIX[queued.sequence % 2])
    return queue, time.perf_counter() - start


def events(pods: list[Pod]) -> Iterator[Figure]:
    """Yield the cost of events while pods wait, and of moving all pods at the end."""
    queue, seconds = rejected(pods)
    count = f"{len(pods):,}"
    yield Figure(name="pop and fail", value=seconds / len(pods) * 1e6, unit="us/pod")
    for name, event in (
        (f"a node comes, {count} wait, all hints skip", NODE_ADD),
        (f"a pod leaves, {count} wait, all hints skip", ASSIGNED_POD_DELETE),
        (f"a pod comes, of {count} no hint is called", ASSIGNED_POD_ADD),
    ):
        queue.move_all(event, None, None, START_NS + 1)
        start = time.perf_counter()
        moved = queue.move_all(event, None, None, START_NS + 1)
        yield Figure(name=name, value=(time.perf_counter() - start) * 1e3, unit="ms", note=f"{moved} moved")
    now_ns = queue.next_flush_ns(START_NS)
    assert now_ns is not None
    start = time.perf_counter()
    moved = queue.flush_unschedulable(now_ns)
    seconds = time.perf_counter() - start
    order = []
    while (queued := queue.pop()) is not None:
        order.append(queued)
    yield Figure(
        name=f"the timer moves {count}",
        value=seconds * 1e3,
        unit="ms",
        decisions_hash=digest(order),
        note=f"{moved} moved",
    )


def memory(pods: list[Pod]) -> Figure:
    """Return the memory of a queued pod in addition to the pod itself."""
    queue = new_queue([], [])
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number, pod in enumerate(pods):
        queue.add(pod, START_NS + number)
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return Figure(name="a pod in the active queue", value=size / len(pods), unit="bytes", note=sys.implementation.name)


def figures(size: str) -> Iterator[Figure]:
    """Yield the figures; ``large`` moves a million pods through the queue."""
    large = size == "large"
    plain = make_pods(1_000_000 if large else 20_000, priorities=(0,))
    yield add_and_pop("add and pop, one priority", plain)
    del plain
    mixed = make_pods(1_000_000 if large else 20_000, priorities=PRIORITIES)
    yield add_and_pop("add and pop, five priorities, three gates", mixed, gates=3)
    few = mixed[: 200_000 if large else 5_000]
    yield one_by_one(few)
    yield memory(few)
    yield from events(mixed[: 10_000 if large else 1_000])
