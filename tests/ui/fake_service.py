"""A service for tests of the page: a fake cluster, answers as structs, a stream of changes, and a server thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import uvicorn
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from bayplan.http_api.contract.answer import Error, Refused, whole
from bayplan.http_api.contract.cluster import SourceList
from bayplan.http_api.contract.configuration import ConfigurationProblem, Validation
from bayplan.http_api.contract.decisions import ClockStatus, DecisionList, DecisionsChanged
from bayplan.http_api.contract.documents import Applied, AppliedItem, AppliedProblem
from bayplan.http_api.contract.nodes import CellsChanged, NodeFacets, NodeList
from bayplan.http_api.contract.pods import PodChanged, PodsChanged, QueueChanged
from bayplan.http_api.contract.runs import ForkList, SnapshotList
from bayplan.ui.application import Page
from tests.http_api.contract_check import check_answer
from tests.ui.fake_answers import (
    cells,
    config,
    density,
    facets,
    node_page,
    overview,
    plugins,
    pod_list,
    pod_page,
    queue,
    queue_counts,
    report,
    root,
)
from tests.ui.fake_cluster import FakeCluster, stamp
from tests.ui.fake_comparison import pod_comparison
from tests.ui.fake_matrix import matrix
from tests.ui.fake_questions import capacity, node_lanes, unblocking, waiting, what_if, what_ifs

TICK_SECONDS = 0.25


class FakeService:
    """The ASGI application.

    Args:
        cluster: The cluster that it serves.
        changes: The number of pods that move in each second.
    """

    def __init__(self, cluster: FakeCluster, *, changes: int = 0) -> None:
        self.cluster = cluster
        self.changes = changes
        self.instance = "fake-1"
        self.clock = ClockStatus(now=stamp(), paused=changes == 0, speed=1, mode="virtual")
        self.requests: list[str] = []
        self._seen: set[tuple[str, str]] = set()
        self.page = Page()
        self.api = Starlette(routes=[Mount("/bayplan/v1", routes=self._routes())])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as `bayplan up` does: requests for the page, then for Bayplan's API, then for the Kubernetes API."""
        if scope["type"] == "http":
            self.requests.append(f"{scope['method']} {scope['path']}")
        answer: ASGIApp = self.page if self.page.answers(scope) else self.api
        await answer(scope, receive, send)

    def _routes(self) -> list[Route | WebSocketRoute]:
        cluster = self.cluster

        def get(path: str, make: Callable[[Request], msgspec.Struct | None]) -> Route:
            async def endpoint(request: Request) -> Response:
                found = make(request)
                if found is None:
                    refused = Refused(
                        what="pod", where=request.url.path, got="a name", wanted="a pod", hint="", request_id="f-1"
                    )
                    return self._answer(request, Error(error=refused), status=404)
                return self._answer(request, found)

            return Route(path, endpoint)

        return [
            get("/", lambda _: root(self.instance)),
            get("/overview", lambda _: overview(cluster)),
            get("/nodes", lambda request: self._nodes(request)),
            get("/nodes/cells", lambda request: cells(cluster, request.query_params.get("by", "zone"))),
            get("/nodes/lanes", lambda request: node_lanes(cluster, *self._lanes(request))),
            get("/nodes/{name:path}", lambda request: node_page(cluster, request.path_params["name"])),
            get("/pods", lambda request: pod_list(cluster, request.query_params)),
            get("/pods/{namespace}/{name}/attempts/{n}/matrix", lambda request: matrix(cluster, *self._names(request))),
            get("/pods/{namespace}/{name}/attempts/{n}/preemption", lambda _: report(cluster)),
            get("/pods/{namespace}/{name:path}", lambda request: pod_page(cluster, *self._names(request))),
            get("/compare/pods/{namespace}/{name}", lambda request: pod_comparison(cluster, *self._names(request))),
            get("/decisions", lambda request: self._decisions(request)),
            get("/decisions/density", lambda request: density(cluster, request.query_params)),
            get("/queue", lambda request: queue(cluster, request.query_params)),
            get("/config", lambda _: config()),
            get("/plugins", lambda _: plugins()),
            get("/sources", lambda _: SourceList(items=[], **whole([]))),
            get("/forks", lambda _: ForkList(items=[], **whole([]))),
            get("/snapshots", lambda _: SnapshotList(items=[], **whole([]))),
            get("/unblock", lambda request: unblocking(cluster, request.query_params.get("workload", ""))),
            get("/capacity", lambda request: capacity(cluster, request.query_params.get("workload", ""))),
            get("/waiting", lambda _: waiting(cluster)),
            get("/what-if", lambda _: what_ifs()),
            Route("/what-if", self._what_if, methods=["POST"]),
            Route("/config/validate", self._validate, methods=["POST"]),
            Route("/apply", self._apply, methods=["POST"]),
            Route("/clock", self._clock, methods=["GET", "PUT"]),
            WebSocketRoute("/stream", self._stream),
        ]

    def _answer(self, request: Request, answer: msgspec.Struct, *, status: int = 200) -> Response:
        """Return an answer as a response; check the first one for each method and path against the contract.

        Raises:
            BrokenContract: The answer does not have the type of the operation.
        """
        body = msgspec.json.encode(answer)
        asked = request.method, request.scope["raw_path"].decode()
        if asked not in self._seen:
            check_answer(*asked, status, body)
            self._seen.add(asked)
        return Response(body, status, media_type="application/json")

    @staticmethod
    def _names(request: Request) -> tuple[str, str]:
        return request.path_params["namespace"], request.path_params["name"]

    def _nodes(self, request: Request) -> NodeList:
        query = request.query_params
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 50))
        text, zone, sort = query.get("q", "").lower(), query.get("zone", ""), query.get("sort", "")
        found = [node for node in self.cluster.nodes if text in node.name.lower() and zone in ("", node.zone)]
        if sort.lstrip("-") == "cpu":
            found.sort(key=lambda node: node.used_cpu / node.cpu, reverse=sort.startswith("-"))
        blocks = bool(query.get("blocks"))
        counted = NodeFacets(zone=facets(node.zone for node in found), pool=facets(node.pool for node in found))
        return NodeList(
            version=self.cluster.version,
            items=[self.cluster.node_row(node, blocks=blocks) for node in found[offset : offset + limit]],
            total=len(found),
            total_is_exact=True,
            offset=offset,
            limit=limit,
            facets=counted if query.get("facets") else msgspec.UNSET,
        )

    def _decisions(self, request: Request) -> DecisionList:
        query = request.query_params
        total = len(self.cluster.decisions)
        high = min(total, int(query.get("before") or total))
        low = max(int(query["after"]) + 1 if query.get("after") else 0, high - int(query.get("limit") or 50))
        return DecisionList(
            version=total,
            items=[self.cluster.decision(number) for number in range(low, high)],
            total=total,
            total_is_exact=True,
            oldest=0,
            oldest_summary=0,
            next=total,
            limit=int(query.get("limit") or 50),
        )

    async def _validate(self, request: Request) -> Response:
        lines = (await request.body()).decode().splitlines()
        problems = [
            ConfigurationProblem(
                line=number,
                column=3,
                path="$.profiles[0].pluginConfig[0].name",
                message="no plugin NodeResourceFit",
                hint="NodeResourcesFit",
            )
            for number, line in enumerate(lines, 1)
            if "NodeResourceFit" in line
        ]
        return self._answer(
            request,
            Validation(
                stage="decode" if problems else None,
                problems=problems,
                effective=None if problems else {},
                difference=[] if problems else ["NodeResourcesFit: strategy LeastAllocated -> MostAllocated"],
                effect="" if problems else "3 pending pods will be retried",
                extension_points=msgspec.UNSET if problems else config().extension_points,
            ),
        )

    async def _apply(self, request: Request) -> Response:
        body = await request.json()
        refused = "refuse me" in body["text"]
        number = int(body.get("count") or 1)
        line = next((at for at, each in enumerate(body["text"].splitlines(), 1) if "refuse me" in each), 1)
        problem = AppliedProblem(line=line, path="spec.containers[0].image", message="the server does not like it")
        items = [
            AppliedItem(
                index=at,
                line=1,
                kind="Pod",
                namespace="default",
                name=f"web-{at + 1}",
                action="refused" if refused else "created",
                message="it is refused" if refused else "",
                path="" if refused else f"/api/v1/namespaces/default/pods/web-{at + 1}",
                problems=[problem] if refused else [],
            )
            for at in range(number)
        ]
        return self._answer(
            request, Applied(items=items, created=0 if refused else number, refused=number if refused else 0)
        )

    @staticmethod
    def _lanes(request: Request) -> tuple[int, int]:
        return int(request.query_params.get("bins", 200)), int(request.query_params.get("limit", 20))

    async def _what_if(self, request: Request) -> Response:
        return self._answer(request, what_if(self.cluster, await request.json()))

    async def _clock(self, request: Request) -> Response:
        if request.method == "PUT":
            self.clock = replace(self.clock, **await request.json())
        return self._answer(request, replace(self.clock, now=stamp()))

    async def _stream(self, socket: WebSocket) -> None:
        await socket.accept("bayplan.v1" if "bayplan.v1" in socket.scope.get("subprotocols", ()) else None)
        topics: list[str] = []

        async def receive() -> None:
            while True:
                topics[:] = json.loads(await socket.receive_text())["topics"]

        listening = asyncio.ensure_future(receive())
        sequence = 0
        try:
            while not listening.done():
                changed = set(self.cluster.changed)
                if self.changes:
                    for topic in list(topics):
                        sequence += 1
                        frame = {
                            "seq": sequence,
                            "instance": self.instance,
                            "at": stamp(),
                            "topic": topic,
                            "data": self._data(topic, changed),
                        }
                        await socket.send_text(msgspec.json.encode(frame).decode())
                await asyncio.sleep(TICK_SECONDS)
        except WebSocketDisconnect:
            pass
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    def _data(self, topic: str, changed: set[int]) -> msgspec.Struct:
        """Return the data of a frame, of the type that `bayplan.http_api.operations.TOPICS` has for its topic."""
        cluster = self.cluster
        if topic.startswith("nodes:"):
            nodes = [cluster.nodes[at] for at in changed]
            return CellsChanged(
                version=cluster.version,
                layout=cluster.layout,
                metric=topic.partition(":")[2],
                known=True,
                complete=False,
                names=[node.name for node in nodes],
                cells=[node.cell for node in nodes],
                flags=[node.flags for node in nodes],
            )
        if topic == "overview":
            return overview(cluster)
        if topic == "clock":
            return replace(self.clock, now=stamp())
        if topic == "decisions":
            return DecisionsChanged(version=len(cluster.decisions), oldest=0, items=[], left_out=0)
        if topic == "queue":
            return QueueChanged(
                version=cluster.version,
                busy=False,
                counts=queue_counts(cluster),
                summary="some wait",
                next_retry_at=stamp(),
            )
        if topic.startswith("pod:"):
            return PodChanged(version=str(cluster.version), exists=False, deleted=False)
        return PodsChanged(version=cluster.version, counts=cluster.pod_counts())

    async def move(self) -> None:
        """Move pods for as long as the server runs."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.cluster.changed.clear()
            self.cluster.change(int(self.changes * TICK_SECONDS))


@contextmanager
def served(service: FakeService, port: int = 0) -> Iterator[str]:
    """Serve the application from a thread; yield its address."""
    config = uvicorn.Config(
        service, port=port, log_level="error", lifespan="off", ws="websockets-sansio", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)

    async def run() -> None:
        moving = asyncio.ensure_future(service.move()) if service.changes else None
        await server.serve()
        if moving is not None:
            moving.cancel()
            await asyncio.gather(moving, return_exceptions=True)

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the server did not start")
        threading.Event().wait(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
