"""``python -m tests.readers``: the run of ``make test-readers``, 100,000 pods scheduled with concurrent readers."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.readers.reader import CPU_MILLI, MEMORY_BYTES, Answered, Plain, Reader

PODS_A_NODE = 500
DEPLOYMENTS = 20
PATIENCE_S = 1_800


def cluster(pods: int) -> list[Plain]:
    """Return nodes with names like a cloud's, and Deployments with `pods` pods in total."""
    capacity = {"cpu": "64", "memory": "256Gi", "pods": str(PODS_A_NODE)}
    items: list[Plain] = []
    for number in range(-(-pods * 5 // (PODS_A_NODE * 4))):
        name = f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "eu-west-1" + "abc"[number % 3]}
        status = {"capacity": capacity, "allocatable": capacity}
        items.append(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
        )
    requests = {"cpu": f"{CPU_MILLI}m", "memory": str(MEMORY_BYTES)}
    container = {"name": "main", "image": "registry.example/app:v1", "resources": {"requests": requests}}
    for number in range(DEPLOYMENTS):
        labels = {"app": f"team-{number}"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": pods // DEPLOYMENTS, "selector": {"matchLabels": labels}, "template": template}
        items.append(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"web-{number}"}, "spec": spec}
        )
    return items


@contextmanager
def server(folder: Path, pods: int) -> Iterator[str]:
    """Run a server with the objects of `cluster`; yield its address."""
    manifest = folder / "cluster.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster(pods)}))
    command = [sys.executable, "-m", "bayplan", "up", str(manifest), "--port", "0"]
    command += ["--write-kubeconfig", str(folder / "kubeconfig")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield found[0]
                    return
            raise RuntimeError("the server ended before it had an address")
        finally:
            process.terminate()
            process.wait(60)


def read_while_scheduling(address: str, pods: int, readers: int, seed: int) -> tuple[list[Answered], float]:
    """Send requests from `readers` threads until all pods are placed; return the answers and the elapsed seconds."""
    done = threading.Event()
    team = [Reader(address, seed + number) for number in range(readers)]

    def read(reader: Reader) -> None:
        while not done.is_set():
            reader.ask()

    threads = [threading.Thread(target=read, args=(reader,)) for reader in team]
    before = time.monotonic()
    for thread in threads:
        thread.start()
    try:
        while time.monotonic() - before < PATIENCE_S and placed_pods(address) < pods:
            time.sleep(0.5)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        for reader in team:
            reader.close()
    return [answer for reader in team for answer in reader.answers], time.monotonic() - before


def placed_pods(address: str) -> int:
    """Return the number of pods that have a node."""
    return int(httpx.get(f"{address}/bayplan/v1/overview", timeout=60).json()["counts"]["placed"])


def table(answers: list[Answered]) -> str:
    """Return a line for each kind of request: the number of answers, their times, and the number of contradictions."""
    lines = [f"{'question':28} {'answers':>8} {'p50 ms':>8} {'p99 ms':>8} {'worst ms':>9} {'wrong':>6}"]
    for question in dict.fromkeys(answer.question for answer in answers):
        found = [answer for answer in answers if answer.question == question]
        times = sorted(answer.seconds * 1_000 for answer in found)
        p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
        wrong = sum(1 for answer in found if answer.problem)
        lines.append(f"{question:28} {len(found):>8,} {p50:>8.1f} {p99:>8.1f} {times[-1]:>9.1f} {wrong:>6,}")
    return "\n".join(lines)


def main() -> None:
    """Run server and readers, print a table, and fail if an answer contradicts itself or a pod stays without node."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=100_000, help="a multiple of 20")
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as name, server(Path(name), options.pods) as address:
        answers, seconds = read_while_scheduling(address, options.pods, options.readers, options.seed)
        placed = placed_pods(address)
    print(table(answers))
    problems = [answer for answer in answers if answer.problem]
    for answer in problems[:10]:
        print(f"{answer.question}: {answer.problem}")
    print(
        f"{placed:,} of {options.pods:,} pods placed in {seconds:.0f} s, {len(answers):,} answers, {len(problems)} wrong"
    )
    if problems or placed != options.pods:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
