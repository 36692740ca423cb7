"""The server that receives hostile requests, in its own process, and each request's cost in CPU time and memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.apiserver.fuzz.expected import seeded
from tests.hostile.expressions import DRIVER
from tests.hostile.scenario import HostileRequest, Plain, named

PATIENCE_S = 120.0
_POLL_S = 0.03
_QUIET_POLLS = 4
_TICKS = os.sysconf("SC_CLK_TCK")


class RequestCost(NamedTuple):
    """The cost of a request.

    Attributes:
        status: The status code of the answer; 0 if there was no answer.
        answer_s: The server's CPU seconds until the answer.
        all_s: The server's CPU seconds until it was idle again: controllers and the scheduler work after the answer.
        megabytes: The largest growth of the server's memory in megabytes.
        text: The beginning of the answer.
    """

    status: int
    answer_s: float
    all_s: float
    megabytes: float
    text: str


def objects() -> list[Plain]:
    """Return the objects that the server holds from the start: one of most kinds, and a node with a device."""
    attributes = {"model": {"string": "a" * 64}}
    slice_: Plain = {
        "driver": DRIVER,
        "nodeName": "seeded",
        "pool": {"name": "seeded", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d", "attributes": attributes}],
    }
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    found: list[Plain] = [each for each in seeded() if each["kind"] not in ("Node", "ResourceQuota", "LimitRange")]
    found.append(named("Node", "v1", "seeded", status={"allocatable": allocatable, "capacity": allocatable}))
    found.append(named("ResourceSlice", "resource.k8s.io/v1", "seeded", spec=slice_))
    found.append(named("DeviceClass", "resource.k8s.io/v1", spec={}))
    return found


class AttackedServer:
    """A server in its own process.

    Args:
        folder: The folder for its files; its log is ``server.log``.
    """

    def __init__(self, folder: Path) -> None:
        manifest = folder / "objects.json"
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))
        command = [sys.executable, "-m", "bayplan", "up", str(manifest), "--port", "0"]
        command += ["--write-kubeconfig", str(folder / "kubeconfig")]
        self.log = folder / "server.log"
        with self.log.open("wb") as log:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        self._client = httpx.Client(base_url=self._address(), timeout=PATIENCE_S)
        self._proc = Path(f"/proc/{self._process.pid}")

    def _address(self) -> str:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            assert line, self.log.read_text()
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                return found[0]

    def close(self) -> None:
        """Kill the server."""
        self._client.close()
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _processor_s(self) -> float:
        fields = (self._proc / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _memory_mb(self, name: str) -> float:
        found = re.search(rf"{name}:\s+(\d+)", (self._proc / "status").read_text())
        assert found is not None
        return int(found[1]) / 1024

    def send(self, request: HostileRequest) -> RequestCost:
        """Send a request, wait until the server is idle, and return the cost."""
        (self._proc / "clear_refs").write_text("5")
        before, memory = self._processor_s(), self._memory_mb("VmRSS")
        headers = {"content-type": request.content_type, "accept": request.accept, "user-agent": "hostile/1"}
        status, text = 0, ""
        try:
            answer = self._client.request(request.method, request.path, content=request.body, headers=headers)
            answered = self._processor_s() - before
            status, text = answer.status_code, answer.content[:500].decode(errors="replace")
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            answered = self._processor_s() - before
            text = repr(problem)
        return RequestCost(status, answered, self._wait() - before, self._memory_mb("VmHWM") - memory, text)

    def _wait(self) -> float:
        """Wait until the server has used no CPU time for a while; return the CPU seconds it had used until then."""
        found, quiet, until = self._processor_s(), 0, time.monotonic() + PATIENCE_S
        while quiet < _QUIET_POLLS and time.monotonic() < until:
            time.sleep(_POLL_S)
            now = self._processor_s()
            quiet = quiet + 1 if now - found <= 1 / _TICKS else 0
            found = now
        return found
