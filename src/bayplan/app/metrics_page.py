"""The scheduler's metrics on the port of the API: ``/metrics``, for Prometheus."""

from __future__ import annotations

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from bayplan.apiserver.http.access import Access
from bayplan.apiserver.model.errors import ApiError
from bayplan.live.metrics import SchedulerMetrics

PATH = "/metrics"


class MetricsPage:
    """Serves ``/metrics``; see `bayplan.apiserver.http.application.Mount`.

    Args:
        metrics: the metrics to serve.
        token: the token that clients must send; empty allows every client on this machine.
    """

    def __init__(self, metrics: SchedulerMetrics, *, token: str = "") -> None:
        self._metrics = metrics
        self._access = Access(token)

    def answers(self, scope: Scope) -> bool:
        """Return whether a request is for the metrics."""
        return bool(scope["type"] == "http" and scope["path"] == PATH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request with the metrics, or with the reason of a refusal."""
        await (await self._answer(Request(scope, receive)))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            self._access.check(request.headers, method=request.method)
        except ApiError as refused:
            return PlainTextResponse(refused.message, refused.code)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("metrics are read-only", 405, {"allow": "GET, HEAD"})
        # Collecting reads the scheduler's queue, which may have to wait for the current cycle.
        return Response(await asyncio.to_thread(self._metrics.text), media_type=CONTENT_TYPE_LATEST)
