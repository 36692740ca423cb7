"""Memory of pods, nodes and records in the state, with their typed objects."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from benchmarks import Figure
from benchmarks.bench_engine import default_profile_scheduler, first_plugins_scheduler, make_nodes, make_pods
from benchmarks.processes import peak_of, run_process


def bound_pod(number: int, node_name: str) -> bytes:
    """Return the JSON of a running pod with the fields that pods of a real cluster have."""
    labels = {"app": f"app-{number % 500}", "pod-template-hash": f"{number % 500:010x}"}
    container = {
        "name": "main",
        "image": f"registry.example/app-{number % 500}:v1",
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/token"}],
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"app-{number % 500}",
        "uid": "u",
        "controller": True,
    }
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:06}",
            "namespace": f"team-{number % 50}",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "labels": labels,
            "ownerReferences": [owner],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [container], "nodeName": node_name, "serviceAccountName": "default"},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:05Z"},
    }
    return msgspec.json.encode(document)


def add_nodes(scheduler: Scheduler, nodes: list[Node], count: int) -> None:
    """Add `count` new nodes to a scheduler and to the list."""
    nodes.extend(make_nodes(count))
    for node in nodes:
        scheduler.handle(None, node, 0)


def bound_pods(scheduler: Scheduler, nodes: list[Node], count: int) -> None:
    """Add `count` running pods to a scheduler, spread over its nodes, decoded as servers and syncs decode them."""
    decoder = ObjectDecoder()
    for number in range(count):
        scheduler.handle(None, decoder.decode(bound_pod(number, nodes[number % len(nodes)].metadata.name), Pod), 0)


def collect_all() -> None:
    """Collect garbage until nothing is left.

    A cluster refers to values that the collector does not track, and needs two passes.
    """
    while gc.collect():
        pass


def grown_by(action: Callable[[], object]) -> int:
    """Return the bytes that an action adds to memory, including its result."""
    collect_all()
    before = tracemalloc.get_traced_memory()[0]
    result = action()
    collect_all()
    grown = tracemalloc.get_traced_memory()[0] - before
    del result
    return grown


def record_bytes(nodes: list[Node], pods_count: int, level: RecordLevel) -> float:
    """Return the bytes of a record: memory per pod after a run if only the run's records are referenced."""

    return grown_by(lambda: decided(nodes, pods_count, level).records) / pods_count


def decided(nodes: list[Node], pods_count: int, level: RecordLevel) -> Scheduler:
    """Return a scheduler that has placed `pods_count` pods of 50 templates."""
    scheduler = default_profile_scheduler(level)
    for node in nodes:
        scheduler.handle(None, node, 0)
    for pod in make_pods(pods_count, 50):
        scheduler.handle(None, pod, 0)
    while scheduler.schedule_one(0) is not None:
        pass
    return scheduler


def hold_bound_pods(nodes_count: int, pods_count: int) -> None:
    """Add bound pods and print the peak memory of this process, which does nothing else."""
    scheduler = default_profile_scheduler(RecordLevel.OFF)
    nodes = make_nodes(nodes_count)
    for node in nodes:
        scheduler.handle(None, node, 0)
    bound_pods(scheduler, nodes, pods_count)
    print(peak_of())


def figures(size: str) -> Iterator[Figure]:
    """Yield the bytes of a bound pod, a node and a record, and the peak memory of a process with bound pods."""
    nodes_count, pods_count = (50, 1_000) if size == "small" else (5_000, 100_000)
    tracemalloc.start()
    scheduler = first_plugins_scheduler(RecordLevel.OFF)
    nodes: list[Node] = []
    node_bytes = grown_by(partial(add_nodes, scheduler, nodes, nodes_count))
    pod_bytes = grown_by(partial(bound_pods, scheduler, nodes, pods_count))
    yield Figure(
        name=f"{pods_count:,} bound pods with their objects",
        value=pod_bytes / pods_count,
        unit="bytes/pod",
        note=f"{pod_bytes / 1e6:,.0f} MB in total",
    )
    yield Figure(name=f"{nodes_count:,} nodes with their objects", value=node_bytes / nodes_count, unit="bytes/node")
    # The first run also pays for imports inside functions.
    record_bytes(nodes, 50, RecordLevel.OFF)
    for level in (RecordLevel.SUMMARY, RecordLevel.FULL):
        yield Figure(
            name=f"a {level.name.lower()} record, 50 templates on {nodes_count:,} nodes",
            value=record_bytes(nodes, max(pods_count // 50, 200), level),
            unit="bytes/record",
        )
    tracemalloc.stop()
    ended = run_process([sys.executable, "-m", "benchmarks.bench_memory", str(nodes_count), str(pods_count)])
    yield Figure(
        name=f"a process with {pods_count:,} bound pods on {nodes_count:,} nodes, peak",
        value=int(ended.stdout) / 1e6,
        unit="MB",
        note="default profile, without tracemalloc",
    )


if __name__ == "__main__":
    hold_bound_pods(int(sys.argv[1]), int(sys.argv[2]))
