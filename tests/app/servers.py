"""A simulator server without sockets: tests send requests to its API in process and set its clock."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from bayplan.apiserver.bridge.bridge import NOTHING_RUNS
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.store.store import Store
from bayplan.app.simulator_server import SimulatorOptions, SimulatorServer
from bayplan.base.clock import Clock
from bayplan.engine.records import RecordLevel

FULL = SimulatorOptions(record_level=RecordLevel.FULL, bridge=NOTHING_RUNS)


class Server:
    """A simulator server that runs, with methods for the requests that tests send."""

    def __init__(self, options: SimulatorOptions, clock: Clock) -> None:
        backend = Backend(Store(), clock=clock.seconds)
        bootstrap(backend)
        self.clock = clock
        self.api = Api(backend)
        self.simulator = SimulatorServer(self.api, options, clock)

    async def send(self, method: str, path: str, document: object = None, kind: str = "application/json") -> Any:
        """Send a request, fail unless it succeeds, and return the answer's JSON document."""
        body = b"" if document is None else json.dumps(document).encode()
        answer = await self.api.handle(Request(method, path, {}, {"content-type": kind, "user-agent": "test/1"}, body))
        assert isinstance(answer, Response)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    async def add_nodes(self, *names: str, cpu: str = "4", zone: str = "") -> None:
        """Create nodes that are ready."""
        for name in names:
            amounts = {"cpu": cpu, "memory": "16Gi", "pods": "50"}
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            labels = {"topology.kubernetes.io/zone": zone} if zone else {}
            status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
            await self.send("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status})
            patch = {"spec": {"taints": None}}
            await self.send("PATCH", f"/api/v1/nodes/{name}", patch, "application/merge-patch+json")

    async def add_pod(self, name: str, cpu: str = "1", **spec: object) -> None:
        """Create a pod with one container that requests `cpu`."""
        container = {"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu}}}
        document = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        await self.send("POST", "/api/v1/namespaces/default/pods", document)

    async def pod(self, name: str) -> Any:
        return await self.send("GET", f"/api/v1/namespaces/default/pods/{name}")

    async def node_of(self, name: str) -> str:
        """Return the name of the pod's node, or the empty string if it has none."""
        return str((await self.pod(name))["spec"].get("nodeName", ""))

    async def settle(self) -> None:
        """Wait until the simulator has nothing left to do at the present simulated time."""
        await self.simulator.settle(60.0)

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until a condition is true, and fail the test after `seconds`."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(options: SimulatorOptions = FULL, clock: Clock | None = None) -> AsyncIterator[Server]:
    """Run a simulator server for the length of a ``with`` block."""
    server = Server(options, clock or Clock())
    server.simulator.start()
    try:
        yield server
        assert server.simulator.bridge.bugs() == {}
    finally:
        server.simulator.stop()
        await asyncio.sleep(0)
