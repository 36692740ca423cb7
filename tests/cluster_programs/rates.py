"""Compare pods per second of `bayplan schedule` and kube-scheduler, in turn, on one real control plane.

    BAYPLAN_CLUSTER_PROGRAMS=build/cluster-programs python -m tests.cluster_programs.rates --nodes 100 --pods 2000
    --rounds 3

All pods exist before a scheduler starts, so that it never waits for their creation. The time runs from the first
binding to the last, as a watch reports them. The machine must have nothing else to do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayplan.client.cluster_access import open_access
from bayplan.client.connection import ApiConnection
from bayplan.client.requests import ApiRequest
from tests.cluster_programs.programs import program
from tests.cluster_programs.real_cluster import RealCluster
from tests.cluster_programs.test_kube_scheduler import node, pod

PODS = "/api/v1/namespaces/default/pods"
PATIENCE_SECONDS = 120.0
LIMITS = ("--kube-api-qps", "5000", "--kube-api-burst", "5000")


def commands(kubeconfig: Path) -> dict[str, list[str]]:
    """Return the command line of each scheduler, by the scheduler's name."""
    own = str(kubeconfig)
    reviews = ("--authentication-kubeconfig", own, "--authorization-kubeconfig", own, "--secure-port", "0")
    return {
        "bayplan": [sys.executable, "-m", "bayplan", "schedule", "--kubeconfig", own, "--port", "-1", "--no-leader-elect", *LIMITS],
        "kube-scheduler": [program("kube-scheduler"), "--kubeconfig", own, *reviews, "--leader-elect=false", *LIMITS],
    }  # fmt: skip


async def post(connection: ApiConnection, path: str, documents: Sequence[dict[str, Any]]) -> None:
    """Create objects with concurrent requests."""
    requests = (ApiRequest("POST", path, json.dumps(document).encode()) for document in documents)
    for response in await asyncio.gather(*map(connection.send, requests)):
        assert response.ok, response.message


async def untainted(connection: ApiConnection, count: int) -> None:
    """Remove the taints of the nodes, since no controller runs that would do it."""
    patch = b'{"spec": {"taints": null}}'
    kind = "application/merge-patch+json"
    requests = (ApiRequest("PATCH", f"/api/v1/nodes/node-{number}", patch, kind) for number in range(count))
    await asyncio.gather(*map(connection.send, requests))


async def measure(connection: ApiConnection, command: Sequence[str], count: int) -> tuple[float, float]:
    """Run a scheduler until it has bound all pods; return the pods per second and its CPU time in seconds."""
    await connection.send(ApiRequest("DELETE", PODS, b'{"gracePeriodSeconds": 0}'))
    while json.loads((await connection.send(ApiRequest("GET", PODS))).body)["items"]:
        await asyncio.sleep(0.2)
    await post(connection, PODS, [pod(f"pod-{number}", "100m", "200Mi") for number in range(count)])
    listed = json.loads((await connection.send(ApiRequest("GET", PODS, query="limit=1"))).body)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        times = await asyncio.wait_for(
            bindings(connection, listed["metadata"]["resourceVersion"], count), PATIENCE_SECONDS
        )
    finally:
        process.terminate()
        process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (count - 1) / (times[-1] - times[0]), seconds


async def bindings(connection: ApiConnection, version: str, count: int) -> list[float]:
    """Return when a watch first showed each pod with a node; resume the watch whenever the server ends it."""
    seen: set[str] = set()
    times: list[float] = []
    while len(seen) < count:
        query = f"watch=1&resourceVersion={version}&timeoutSeconds=600"
        async for lines in connection.stream(PODS, query):
            now = time.monotonic()
            for line in filter(None, lines):
                metadata = json.loads(line)["object"]["metadata"]
                version = metadata["resourceVersion"]
                if b'"nodeName":"' in line and metadata["name"] not in seen:
                    seen.add(metadata["name"])
                    times.append(now)
            if len(seen) == count:
                break
    return times


async def compare(kubeconfig: Path, nodes: int, pods: int, rounds: int) -> None:
    """Measure both schedulers in each round, and print each result."""
    access = await open_access(kubeconfig)
    async with ApiConnection(access, user_agent="rates/1.0", qps=-1) as connection:
        await post(connection, "/api/v1/nodes", [node(f"node-{number}") for number in range(nodes)])
        await untainted(connection, nodes)
        for _ in range(rounds):
            for name, command in commands(kubeconfig).items():
                rate, seconds = await measure(connection, command, pods)
                print(f"{name:15} {rate:6.0f} pods/s  {seconds:5.1f} s of processor time", flush=True)


def main() -> None:
    """Run a control plane and measure both schedulers on it."""
    parser = argparse.ArgumentParser(description="Pods a second, side by side.")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = RealCluster(Path(folder))
        try:
            cluster.start()
            asyncio.run(compare(cluster.kubeconfig, options.nodes, options.pods, options.rounds))
        finally:
            cluster.kill()


if __name__ == "__main__":
    main()
