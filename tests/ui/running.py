"""Run `bayplan up` in another process with a small cluster, for tests of the whole program."""

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
    """Return a node; if `taint` is given, it has a NoSchedule taint with that key."""
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
    """Return a Deployment whose pods have these requests."""
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
    """Return nine nodes and a tainted one, a Deployment, a pod too big for all nodes, and one for the tainted node."""
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
    """A running server.

    Attributes:
        url: The URL of the server.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self.url = url

    def get(self, path: str) -> dict[str, object]:
        """Return the answer of Bayplan's API to a GET request."""
        answer = httpx.get(f"{self.url}/bayplan/v1{path}", timeout=30)
        answer.raise_for_status()
        found: dict[str, object] = answer.json()
        return found

    def kill(self) -> None:
        """Kill the process, as abruptly as a crash."""
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> None:
        """Terminate the process; kill it if it does not end in time."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def running(
    folder: Path, documents: Sequence[Manifest], *options: str, port: int = 0, settled: bool = True
) -> Iterator[Running]:
    """Run `bayplan up` with these objects for a ``with`` block; if `settled`, wait first until its queue is idle."""
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
    """Wait until the queue has no pods to try now."""
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
