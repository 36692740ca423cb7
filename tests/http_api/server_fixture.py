"""A whole server in the test's process: API, controllers, engine and service, called through ASGI without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.store.store import Store
from bayplan.app.scheduler_setup import SchedulerOptions
from bayplan.app.simulator_server import SimulatorOptions, SimulatorServer
from bayplan.base.clock import Clock
from bayplan.engine.records import RecordLevel
from bayplan.http_api.application import Service
from bayplan.http_api.operations import ROOT
from tests.http_api.contract_check import check_answer

Document = dict[str, Any]

_COLLECTIONS = {
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "Pod": "/api/v1/namespaces/{}/pods",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
}
_PATIENCE_SECONDS = 20.0


class ServerFixture:
    """A running server with its service.

    Attributes:
        server: The simulator server.
        service: The service that runs on the server.
        client: A client of the service, which connects from this machine.
    """

    def __init__(self, server: SimulatorServer, service: Service, client: httpx.AsyncClient) -> None:
        self.server = server
        self.service = service
        self.client = client

    async def api(self, method: str, path: str, document: object = None, content_type: str = "application/json") -> Any:
        """Send a request to the Kubernetes API; return the document of the answer."""
        body = b"" if document is None else json.dumps(document).encode()
        answer = await self.server.api.handle(Request(method, path, {}, {"content-type": content_type}, body))
        assert isinstance(answer, Response)
        assert answer.status < 300, answer.body
        return json.loads(answer.body)

    async def create(self, *documents: Mapping[str, Any]) -> None:
        """Create objects through the API."""
        for document in documents:
            namespace = document["metadata"].get("namespace", "default")
            await self.api("POST", _COLLECTIONS[document["kind"]].format(namespace), document)

    async def settle(self) -> None:
        """Wait until the server has nothing left to do at the present simulated time."""
        engine = self.server.engine
        quiet, end = 0, asyncio.get_running_loop().time() + _PATIENCE_SECONDS
        while quiet < 3:
            assert asyncio.get_running_loop().time() < end, "the server does not come to rest"
            self.server.bridge.flush()
            active = await asyncio.wrap_future(engine.submit(lambda scheduler: scheduler.queue.has_next))
            pending = await asyncio.wrap_future(engine.submit(lambda scheduler: len(scheduler.bindings.pending)))
            quiet = (
                0
                if (active and not self.server.clock.paused) or pending or not self.server.action_loop.is_idle
                else quiet + 1
            )
            await asyncio.sleep(0.005)

    async def get(self, path: str, want: int = 200, **query: object) -> Any:
        """Send a GET request to the service, check that the status is `want`, and return the document of the answer."""
        params = {name: str(value) for name, value in query.items()} or None
        answer = await self.client.get(f"{ROOT}{path}", params=params)
        assert answer.status_code == want, answer.text
        return answer.json() if answer.content else None

    async def send(self, method: str, path: str, body: object = None, want: int = 200) -> Any:
        """Send a request to the service, check that the status is `want`, and return the document of the answer."""
        content = body if isinstance(body, str) else json.dumps(body) if body is not None else ""
        answer = await self.client.request(method, f"{ROOT}{path}", content=content)
        assert answer.status_code == want, answer.text
        return answer.json() if answer.content else None


async def _checked(answer: httpx.Response) -> None:
    """Fail if an answer does not follow the contract."""
    if "text/event-stream" not in answer.headers.get("content-type", ""):
        body = await answer.aread()
        check_answer(answer.request.method, answer.request.url.raw_path.decode(), answer.status_code, body)


@asynccontextmanager
async def server_fixture(
    *documents: Mapping[str, Any],
    level: RecordLevel = RecordLevel.FULL,
    plugins: Iterable[str] = (),
    paused: bool = False,
    seed: int = 1,
    allowed_origins: Collection[str] = (),
    clock: Clock | None = None,
) -> AsyncIterator[ServerFixture]:
    """Run a server that holds `documents` from the start."""
    clock = clock or Clock(paused=paused)
    backend = Backend(Store(), clock=clock.seconds)
    bootstrap(backend)
    scheduler = SchedulerOptions(plugins=tuple(plugins), seed=seed)
    server = SimulatorServer(Api(backend), SimulatorOptions(scheduler=scheduler, record_level=level), clock)
    service = Service(server, allowed_origins=allowed_origins)
    transport = httpx.ASGITransport(app=service)
    hooks = {"response": [_checked]}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", event_hooks=hooks) as client:
        running = ServerFixture(server, service, client)
        await running.create(*documents)
        server.start()
        service.start()
        try:
            await running.settle()
            yield running
            assert server.bridge.bugs() == {}
        finally:
            service.end_streams()
            service.close()
            server.stop()


def run(test: Callable[[ServerFixture], Awaitable[None]], *documents: Mapping[str, Any], **options: Any) -> None:
    """Run a test with its own server."""

    async def within() -> None:
        async with server_fixture(*documents, **options) as running:
            await test(running)

    asyncio.run(within())


# --- objects ----------------------------------------------------------------------------------------------------------


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", zone: str = "", pods: str = "110", **more: Any) -> Document:
    """Return a ready node; `more` are fields of its spec."""
    labels = {"kubernetes.io/hostname": name} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    amounts = {"cpu": cpu, "memory": memory, "pods": pods} | more.pop("resources", {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | more.pop("labels", {})},
        "spec": more,
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(name: str, *, cpu: str = "1", memory: str = "1Gi", namespace: str = "default", **more: Any) -> Document:
    """Return a pod; `more` are fields of its spec."""
    container = {"name": "c", "image": "app:v1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": more.pop("labels", {})},
        "spec": {"containers": [container], **more},
    }
