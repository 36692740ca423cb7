"""The server for hostile requests, in its own process, with the processor time and memory of each request."""

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


class Taken(NamedTuple):
    """The cost of a request.

    Attributes:
        status: of the answer; 0 if there was none.
        answer_s: seconds of processor until the answer.
        all_s: until the server was quiet again: controllers and the scheduler work after the answer.
        megabytes: more than before, at most.
        text: of the answer, its beginning.
    """

    status: int
    answer_s: float
    all_s: float
    megabytes: float
    text: str


def objects() -> list[Plain]:
    """Return what the server holds: an object of most kinds, and a node with a device."""
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


class Victim:
    """A server.

    Args:
        folder: for its files; the log is ``server.log`` there.
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
        """End the server."""
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

    def send(self, request: HostileRequest) -> Taken:
        """Send a request, and wait until the server is quiet."""
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
        return Taken(status, answered, self._wait() - before, self._memory_mb("VmHWM") - memory, text)

    def _wait(self) -> float:
        """Return the seconds of processor taken when the server is quiet: when it has taken none for some time."""
        found, quiet, until = self._processor_s(), 0, time.monotonic() + PATIENCE_S
        while quiet < _QUIET_POLLS and time.monotonic() < until:
            time.sleep(_POLL_S)
            now = self._processor_s()
            quiet = quiet + 1 if now - found <= 1 / _TICKS else 0
            found = now
        return found
