"""Preemptors per second: every node is full of pods of low priority, and pods of high priority arrive.

The workload has the shape of scheduler_perf's PreemptionBasic: four small pods per node, and preemptors that replace
three of them. Victims are deleted immediately, and the host writes nominations and bindings back. The time ends when
the last preemptor is bound.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.garbage_collector import frozen_objects
from bayplan.engine.actions import Action, Bind, Evict, Nominate
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode_json
from bayplan.objects.pod import Pod
from benchmarks import Figure
from benchmarks.bench_engine import default_scheduler, make_nodes

LOW_PODS_PER_NODE = 4


def make_pod(name: str, cpu: str, priority: int, node_name: str = "") -> Pod:
    """Return a pod, from JSON."""
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10"}
    spec = {
        "containers": [{**container, "resources": {"requests": {"cpu": cpu, "memory": "500Mi"}}}],
        "priority": priority,
        "nodeName": node_name,
    }
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": spec,
        "status": {"startTime": "2026-01-01T00:00:00Z"} if node_name else {},
    }
    return default_object(decode_json(msgspec.json.encode(document), Pod))


def execute(scheduler: Scheduler, action: Action, now_ns: int) -> str:
    """Execute an action of the scheduler; return the name of the node that a pod was bound to, or ""."""
    pod = scheduler.pods.get(action.pod.key)
    if pod is None:
        return ""
    if isinstance(action, Evict):
        scheduler.handle(pod, None, now_ns)
    elif isinstance(action, Nominate):
        nominated = replace(pod, status=replace(pod.status, nominated_node_name=action.node_name))
        scheduler.handle(pod, nominated, now_ns)
    elif isinstance(action, Bind):
        scheduler.handle(pod, replace(pod, spec=replace(pod.spec, node_name=action.node_name)), now_ns)
        return action.node_name
    return ""


def run(scheduler: Scheduler, nodes_count: int, preemptors_count: int) -> tuple[float, str]:
    """Bind all preemptors; return the seconds, and a hash of the nodes in the order of bindings."""
    nodes = make_nodes(nodes_count)
    for node in nodes:
        scheduler.handle(None, node, 0)
    for number in range(nodes_count * LOW_PODS_PER_NODE):
        node_name = nodes[number % nodes_count].metadata.name
        scheduler.handle(None, make_pod(f"low-{number}", "900m", 0, node_name), 0)
    preemptors = [make_pod(f"high-{number}", "3", 10) for number in range(preemptors_count)]
    gc.collect()
    with frozen_objects():
        return _timed(scheduler, preemptors)


def _timed(scheduler: Scheduler, preemptors: list[Pod]) -> tuple[float, str]:
    start = time.perf_counter()
    now_ns = 0
    for pod in preemptors:
        scheduler.handle(None, pod, now_ns)
    chosen: list[str] = []
    while len(chosen) < len(preemptors):
        report = scheduler.schedule_one(now_ns)
        if report is None:
            now_ns = max(scheduler.next_wakeup_ns(now_ns) or 0, now_ns + SECOND_NS)
            scheduler.tick(now_ns)
            continue
        chosen += filter(None, (execute(scheduler, action, now_ns) for action in report.actions))
    seconds = time.perf_counter() - start
    return seconds, hashlib.blake2b("\n".join(chosen).encode(), digest_size=8).hexdigest()


def figures(size: str) -> Iterator[Figure]:
    """Yield preemptors per second."""
    for nodes_count, preemptors_count in ((50, 20),) if size == "small" else ((500, 500), (5_000, 1_000)):
        seconds, digest = run(default_scheduler(RecordLevel.SUMMARY), nodes_count, preemptors_count)
        yield Figure(
            name=f"{nodes_count:,} nodes, {preemptors_count:,} preemptors",
            value=preemptors_count / seconds,
            unit="preemptors/s",
            decisions_hash=digest,
            note=f"{LOW_PODS_PER_NODE} pods of low priority a node",
        )
