"""`bayplan up` in a process of its own, with a small cluster, for journeys through the real thing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import httpx
import yaml

from tests.ui.cloud_names import cloud_name

PATIENCE_SECONDS = 90
Manifest = dict[str, object]
ZONES = ("a", "b", "c")


def node(name: str, zone: str, *, cpu: str = "8", taint: str = "") -> Manifest:
    """Return a node; with a taint of that key it takes only pods that tolerate it."""
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name: str, *, cpu: str = "1", memory: str = "1Gi", **spec: object) -> Manifest:
    """Return a pod with these requests."""
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def deployment(name: str, replicas: int, *, cpu: str = "1", memory: str = "1Gi") -> Manifest:
    """Return a Deployment of such pods."""
    template = cast("dict[str, object]", pod(name, cpu=cpu, memory=memory)["spec"])
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    }


def ten_nodes() -> list[Manifest]:
    """Return nine nodes and one that is tainted, a Deployment, a pod that fits nowhere, and one that waits for the tainted node."""
    nodes = [node(cloud_name(number), ZONES[number % 3]) for number in range(9)]
    tainted = node(cloud_name(9), "a", cpu="16", taint="gpu")
    return [
        *nodes,
        tainted,
        deployment("front", 12),
        pod("too-big", cpu="64"),
        pod("homesick", nodeSelector={"kubernetes.io/hostname": cloud_name(9)}),
    ]


class Running:
    """A server that runs.

    Attributes:
        url: of it.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self.url = url

    def get(self, path: str) -> dict[str, object]:
        """Return our API's answer."""
        answer = httpx.get(f"{self.url}/bayplan/v1{path}", timeout=30)
        answer.raise_for_status()
        found: dict[str, object] = answer.json()
        return found

    def kill(self) -> None:
        """Let it die as a crash does."""
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> None:
        """End it in good order, or else."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def running(
    folder: Path, documents: Sequence[Manifest], *options: str, port: int = 0, settled: bool = True
) -> Iterator[Running]:
    """Run `bayplan up` with these objects until the block ends; settled: wait until the queue is idle."""
    objects, kubeconfig, log = folder / "objects.yaml", folder / "kubeconfig", folder / "up.log"
    objects.write_text(yaml.safe_dump_all(documents))
    paths = [str(objects)] if documents else []
    kubeconfig.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "bayplan",
        "up",
        *paths,
        "--port",
        str(port),
        "--write-kubeconfig",
        str(kubeconfig),
        *options,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    server = None
    try:
        server = Running(process, _address(process, kubeconfig, log))
        if settled:
            _settled(server)
        yield server
    finally:
        (server or Running(process, "")).stop()


def _address(process: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> str:
    for _ in range(PATIENCE_SECONDS * 10):
        if process.poll() is not None:
            raise RuntimeError(log.read_text())
        if kubeconfig.exists():
            address: str = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
            return address
        time.sleep(0.1)
    raise RuntimeError(f"no answer within {PATIENCE_SECONDS} s: {log.read_text()}")


def _settled(server: Running) -> None:
    """Wait until the queue holds no pod that could be tried now."""
    calm = 0
    for _ in range(PATIENCE_SECONDS * 10):
        try:
            counts = cast("dict[str, int]", server.get("/overview")["queue"])
            pods = cast("dict[str, int]", server.get("/overview")["counts"])["pods"]
            calm = calm + 1 if pods and not counts["active"] and not counts["backoff"] else 0
        except httpx.TransportError:
            calm = 0
        if calm == 3:
            return
        time.sleep(0.1)
    raise RuntimeError("the scheduler does not come to rest")
