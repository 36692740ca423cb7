"""The probe and metrics server of a scheduler: /healthz, /livez, /readyz and /metrics, as in kube-scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bayplan.base.errors import InputError
from bayplan.base.ports import check_port

Check = Callable[[], str]
"""A health check; it returns a description of the problem, or ""."""


LEADER_GRACE_SECONDS = 20.0
"""A leader is unhealthy if its lease expired longer ago than this."""


class HealthServer:
    """Serves probes and Prometheus metrics on the running event loop.

    Args:
        checks: the checks by path (``healthz``, ``livez``, ``readyz``) and name.
        metrics: the function that returns the metrics; called on a separate thread.
        listen, port: the address and port to listen on; port 0 chooses a free one.
        certificate, key: the TLS certificate and key, as PEM files; None for plain HTTP.
        protocol: the HTTP protocol class of uvicorn, to set limits.

    Attributes:
        url: the URL of the server.

    Raises:
        InputError: it cannot listen on the address, or the certificate is invalid.
    """

    def __init__(
        self,
        checks: Mapping[str, Mapping[str, Check]],
        metrics: Callable[[], bytes],
        *,
        listen: str,
        port: int,
        certificate: Path | None = None,
        key: Path | None = None,
        protocol: type[asyncio.Protocol] | None = None,
    ) -> None:
        self._metrics = metrics
        _check_certificate(certificate, key)
        check_port(port)
        try:
            family = socket.AF_INET6 if ":" in listen else socket.AF_INET
            self._socket = socket.create_server((listen, port), family=family)
        except OSError as problem:
            reason, _, _ = (problem.strerror or str(problem)).partition(" (while attempting")
            got = f"{listen} port {port}: {reason.lower()}"
            raise InputError(
                "--listen and --port", got=got, wanted="an available address and port", hint="--port 0"
            ) from None
        shown, bound = self._socket.getsockname()[:2]
        host = f"[{shown}]" if ":" in shown else shown
        self.url = f"{'https' if certificate is not None else 'http'}://{host}:{bound}"
        routes = [Route("/metrics", self._metrics_page)]
        for path, named in checks.items():
            routes.append(Route(f"/{path}", _page(path, named)))
            routes += [Route(f"/{path}/{name}", _page(path, {name: check})) for name, check in named.items()]
        config = uvicorn.Config(
            Starlette(routes=routes),
            http="auto" if protocol is None else protocol,
            # Uvicorn's own configuration of logging fails if standard output is closed.
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=2,
            ssl_certfile=None if certificate is None else str(certificate),
            ssl_keyfile=None if key is None else str(key),
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def _metrics_page(self, request: Request) -> Response:
        # Reading the scheduler's queue may have to wait for the current cycle.
        return Response(await asyncio.to_thread(self._metrics), media_type=CONTENT_TYPE_LATEST)

    def start(self) -> None:
        """Start serving."""
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._socket]))

    async def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()


def _check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Raise InputError for invalid TLS files, which would otherwise fail only when the server runs."""
    if certificate is None:
        if key is not None:
            raise InputError("--tls-cert and --tls-key", got="only --tls-key", wanted="both or neither")
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except OSError as problem:
        raise InputError(
            "--tls-cert and --tls-key", got=str(problem), wanted="a certificate and its key (PEM)"
        ) from None


class _Server(uvicorn.Server):
    """A server that does not install signal handlers; its process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _page(path: str, checks: Mapping[str, Check]) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        left_out = request.query_params.getlist("exclude")
        found = {name: check() for name, check in checks.items() if name not in left_out}
        lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in found.items()]
        if any(found.values()):
            return PlainTextResponse("\n".join([*lines, f"{path} check failed", ""]), status_code=500)
        if "verbose" in request.query_params:
            return PlainTextResponse("\n".join([*lines, f"{path} check passed", ""]))
        return PlainTextResponse("ok")

    return page
