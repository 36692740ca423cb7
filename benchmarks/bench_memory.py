"""What pods cost in memory: known to the state, with their typed objects."""

from __future__ import annotations

import gc
import resource
import sys
import tracemalloc
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from bayplan.engine.records import RecordLevel
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode_json
from bayplan.objects.pod import Pod
from benchmarks import Figure
from benchmarks.bench_engine import first_plugins_scheduler, make_nodes


def bound_pod(number: int, node_name: str) -> Pod:
    """Return a running pod, parsed from JSON of its own, with what pods of a real cluster have."""
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
    pod = default_object(decode_json(msgspec.json.encode(document), Pod))
    return replace(pod)


def figures(size: str) -> Iterator[Figure]:
    """Yield the bytes of a bound pod, its typed object included."""
    nodes_count, pods_count = (50, 1_000) if size == "small" else (5_000, 100_000)
    scheduler = first_plugins_scheduler(RecordLevel.OFF)
    nodes = make_nodes(nodes_count)
    for node in nodes:
        scheduler.handle(None, node, 0)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(pods_count):
        scheduler.handle(None, bound_pod(number, nodes[number % nodes_count].metadata.name), 0)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    yield Figure(
        name=f"{pods_count:,} bound pods with their objects",
        value=grown / pods_count,
        unit="bytes/pod",
        note=f"{grown / 1e6:,.0f} MB for them all; peak of the process, tracing included, {peak / 1e6:,.0f} MB",
    )
