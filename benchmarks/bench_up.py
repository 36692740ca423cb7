"""The scheduler inside ``bayplan up``: pods created over HTTP, scheduled, bound and recorded, and all results read.

The server is a process on one core, the load comes from another (see `bench_api`). Pods are created while the clock is
paused. Then it is resumed, and watching, deciding, binding and recording are measured, until the API reports a node for
every pod. The cases of kube-scheduler-simulator (1,067 pods on 100 nodes; 1,000 on 1,000) start with the first create.
In these cases sixteen connections determine the order of pods, so their hash is of names only.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks import Figure
from benchmarks.bench_api import Load, get, names_hash, own_core, server_megabytes, server_seconds, serving

SHAPES = (("250m", "512Mi"), ("500m", "1Gi"), ("250m", "512Mi"), ("1", "2Gi"))
"""The requests of the pods in turn: CPU and memory. A node has 32 CPUs and 128 GiB."""

SCHEDULED = {"small": (200, 20), "large": (5000, 100)}
RECORDED = {"small": (100, 100), "large": (2000, 1000)}
KSS = {"small": ((107, 10), (100, 100)), "large": ((1067, 100), (1000, 1000))}
NOTHING_RUNS = ["--no-kubelet", "--no-controllers"]


def figures(size: str) -> Iterator[Figure]:
    """Yield the figures; `size` is ``small`` or ``large``."""
    with tempfile.TemporaryDirectory() as name, own_core(1):
        folder = Path(name)
        pods, nodes = SCHEDULED[size]
        for title, options in (
            ("scheduled, summaries", [*NOTHING_RUNS, "--records", "summary"]),
            ("scheduled, summaries, controllers and kubelet", ["--records", "summary"]),
        ):
            yield _scheduled(folder, f"{title}, {nodes} nodes", pods, nodes, options)
        pods, nodes = RECORDED[size]
        yield _scheduled(folder, f"scheduled, full records, {nodes:,} nodes", pods, nodes, [*NOTHING_RUNS])
        for pods, nodes in KSS[size]:
            yield from _as_in_kss(folder, pods, nodes)


def _scheduled(folder: Path, title: str, pods: int, nodes: int, options: list[str]) -> Figure:
    with serving(folder, [_node_file(folder, nodes), "--paused", *options]) as port:
        # Create one pod at a time, so that the order of decisions is always the same.
        Load(port, [], connections=1).run([create_request(number) for number in range(pods)])
        before = server_seconds(port)
        start = time.perf_counter()
        put(port, "/bayplan/v1/clock", {"paused": False})
        _wait_until_bound(port)
        seconds, busy = time.perf_counter() - start, max(server_seconds(port) - before, 0.01)
        note = f"{pods / busy:,.0f} for each second that the server computed"
        return Figure(name=title, value=pods / seconds, unit="pods/s", decisions_hash=nodes_hash(port), note=note)


def _as_in_kss(folder: Path, pods: int, nodes: int) -> Iterator[Figure]:
    """Yield the time from the first create until every pod is bound, and the time to read every result."""
    title = f"{pods:,} pods on {nodes:,} nodes"
    with serving(folder, [_node_file(folder, nodes)]) as port:
        before = server_megabytes(port)
        start = time.perf_counter()
        Load(port, []).run([create_request(number) for number in range(pods)])
        _wait_until_bound(port)
        seconds = time.perf_counter() - start
        megabytes = server_megabytes(port)
        digest = names_hash(port)
        yield Figure(name=f"{title}: bound, all recorded", value=seconds, unit="s", decisions_hash=digest)
        yield Figure(name=f"{title}: memory for it", value=megabytes - before, unit="MB", decisions_hash=digest)
        start = time.perf_counter()
        rows = sum(_matrix_rows(port, number) for number in range(pods))
        note = f"{rows:,} rows of nodes, a request for each pod"
        asked = time.perf_counter() - start
        yield Figure(name=f"{title}: every result read", value=asked, unit="s", decisions_hash=digest, note=note)


def _matrix_rows(port: int, number: int) -> int:
    path = f"/bayplan/v1/pods/default/{pod_name(number)}/attempts/latest/matrix?limit=10000"
    rows = json.loads(get(port, path))["rows"]
    assert rows, path
    return len(rows)


# --- the cluster ------------------------------------------------------------------------------------------------------


def _node_file(folder: Path, count: int) -> str:
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{number:05}", "labels": {"kubernetes.io/hostname": f"node-{number:05}"}},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for number in range(count)
    ]
    path = folder / f"nodes-{count}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def pod_name(number: int) -> str:
    return f"pod-{number:06}"


def create_request(number: int) -> bytes:
    """Return the bytes of a request that creates a pod."""
    cpu, memory = SHAPES[number % len(SHAPES)]
    container = {"name": "main", "image": "service:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    metadata = {"name": pod_name(number), "labels": {"app": "service"}}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    body = json.dumps(document).encode()
    head = "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def put(port: int, path: str, document: object) -> None:
    """Send a document with PUT."""
    headers = {"Content-Type": "application/json"}
    request = Request(f"http://127.0.0.1:{port}{path}", json.dumps(document).encode(), headers=headers, method="PUT")
    with urlopen(request) as answer:
        assert answer.status == 200


def _wait_until_bound(port: int, seconds: float = 300.0) -> None:
    end = time.perf_counter() + seconds
    while json.loads(get(port, "/api/v1/pods?fieldSelector=spec.nodeName%3D&limit=1"))["items"]:
        assert time.perf_counter() < end, "pods have no node"
        time.sleep(0.05)


def nodes_hash(port: int) -> str:
    """Return a hash of the node of each pod."""
    items = json.loads(get(port, "/api/v1/namespaces/default/pods"))["items"]
    nodes = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in items}
    return hashlib.sha256(json.dumps(nodes).encode()).hexdigest()[:16]
