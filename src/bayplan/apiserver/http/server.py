"""The server: a store (in memory or durable), the API over it, and uvicorn in front; and the kubeconfig to reach it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
import yaml

from bayplan.apiserver.http.access import LOOPBACK
from bayplan.apiserver.http.application import Application, Mount
from bayplan.apiserver.http.protocol import GatheringProtocol
from bayplan.apiserver.http.rate_limit import RateLimit
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.api_endpoints import advertised_address
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError
from bayplan.base.ports import check_port

_CONTEXT = "bayplan"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where and how to serve.

    Attributes:
        listen: address; one that is not of this machine needs a token.
        port: 0 takes a free one.
        token: what clients must show; empty lets everybody in.
        certificate, key: of TLS, as files in PEM; both or none.
        store: file of a durable store; None keeps everything in memory.
        rate_limit: how many requests a second each client may send; 0 for any number.
    """

    listen: str = "127.0.0.1"
    port: int = 6443
    token: str = ""
    certificate: Path | None = None
    key: Path | None = None
    store: Path | None = None
    rate_limit: float = 0.0


def check_options(options: ServerOptions) -> None:
    """Refuse options that contradict one another, or would let the world in.

    Raises:
        InputError: they do.
    """
    check_port(options.port)
    if options.rate_limit < 0:
        raise InputError("--rate-limit", got=f"{options.rate_limit:g}", wanted="requests a second, or 0 for any number")
    if options.listen not in LOOPBACK and not options.token:
        hint = f"--token {secrets.token_urlsafe(12)}"
        raise InputError("--listen", got=f"{options.listen} without a token", wanted="a token for clients", hint=hint)
    if (options.certificate is None) != (options.key is None):
        raise InputError("--tls-cert and --tls-key", got="one of them", wanted="both or none")
    if options.certificate is not None and options.key is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(options.certificate, options.key)
        except (OSError, ssl.SSLError) as problem:
            raise InputError("--tls-cert and --tls-key", got=str(problem), wanted="a certificate and its key") from None


class ApiServer:
    """A server that is assembled and not yet running.

    Args:
        options: checked.
        clock: tells the server's time, in seconds since 1970.

    Attributes:
        backend: for loading documents before it runs. api: what answers requests, for callers in this process.
        url: where clients reach it; known from the start, because the socket is bound at once.

    Raises:
        InputError: the options are wrong, the address is taken, or the file is no store.
    """

    def __init__(self, options: ServerOptions, *, clock: Callable[[], float] = time.time) -> None:
        check_options(options)
        self.options = options
        self._socket = _bind(options)
        store = Store()
        self._recorder: DurableRecorder | None = None
        if options.store is not None:
            self._recorder = DurableRecorder(options.store, store, on_failure=self._disk_failed)
        self.backend = Backend(store, clock=clock)
        self.backend.advertised = (advertised_address(options.listen), self._socket.getsockname()[1])
        bootstrap(self.backend)
        self.url = self._url()
        self.api = Api(self.backend, address=self.url.partition("//")[2])
        limit = RateLimit(options.rate_limit) if options.rate_limit else None
        self._application = Application(self.api, token=options.token, recorder=self._recorder, rate_limit=limit)
        self._server: _Server | None = None
        self._failure: Exception | None = None

    def mount(self, application: Mount, *, on_end: Callable[[], None] | None = None) -> None:
        """Let an application answer its paths beside the API; of several the first that takes a request has it.

        Args:
            application: that is asked. on_end: ends its streams when the server stops.
        """
        self._application.mounts.append(application)
        if on_end is not None:
            self._application.on_end.append(on_end)

    def settled(self, revision: int) -> asyncio.Future[None] | None:
        """Return what to await until a revision may be acknowledged; None where that is so already. For who writes in process."""
        return None if self._recorder is None else self._recorder.settled(revision)

    def _url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
        scheme = "https" if self.options.certificate is not None else "http"
        return f"{scheme}://[{shown}]:{port}" if ":" in shown else f"{scheme}://{shown}:{port}"

    def _disk_failed(self, problem: Exception) -> None:
        self._failure = problem
        if self._server is not None:
            self._server.should_exit = True

    def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve until the process is told to end.

        Args:
            on_ready: is called when requests are answered.

        Raises:
            InputError: the disk of a durable store has refused a write.
        """
        if self._recorder is not None:
            self._recorder.flush()
        certificate, key = self.options.certificate, self.options.key
        config = uvicorn.Config(
            self._application,
            log_level="warning",
            access_log=False,
            http=GatheringProtocol,
            ws="websockets-sansio",
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=5,
            server_header=False,
            ssl_certfile=None if certificate is None else str(certificate),
            ssl_keyfile=None if key is None else str(key),
        )
        self._server = _Server(config, self._application, on_ready)
        # What is loaded lives as long as the server; the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        thresholds = gc.get_threshold()
        gc.set_threshold(50_000, 20, 100)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._socket])
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            self.close()
        if self._failure is not None:
            raise InputError(
                f"--store: {self._failure}", where=str(self.options.store), wanted="a disk that can be written"
            )

    def stop(self) -> None:
        """Tell a running server to end; from any thread."""
        if self._server is not None:
            self._server.should_exit = True

    def close(self) -> None:
        """Close socket and store."""
        self._socket.close()
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    def kubeconfig(self) -> str:
        """Return a kubeconfig that reaches the server."""
        cluster: dict[str, object] = {"server": self.url}
        if self.options.certificate is not None:
            cluster["certificate-authority"] = str(self.options.certificate.resolve())
        user: dict[str, object] = {"token": self.options.token} if self.options.token else {}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _CONTEXT, "cluster": cluster}],
            "users": [{"name": _CONTEXT, "user": user}],
            "contexts": [{"name": _CONTEXT, "context": {"cluster": _CONTEXT, "user": _CONTEXT}}],
            "current-context": _CONTEXT,
        }
        text: str = yaml.safe_dump(document, sort_keys=False)
        return text


def write_kubeconfig(path: Path, text: str) -> None:
    """Write a kubeconfig that only its owner may read, in one step."""
    partial = path.with_name(f".{path.name}.partial")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(partial, path)


def _bind(options: ServerOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.listen else socket.AF_INET
    try:
        return socket.create_server((options.listen, options.port), family=family, backlog=1024)
    except OSError as problem:
        got = f"{options.listen} port {options.port}: {(problem.strerror or str(problem)).lower()}"
        raise InputError("--listen and --port", got=got, wanted="an address to listen on", hint="--port 0") from None


class _Server(uvicorn.Server):
    """Uvicorn, told when it is ready, and ending watches before it waits for connections to close."""

    def __init__(self, config: uvicorn.Config, application: Application, on_ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._application = application
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_ready is not None:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.end_streams()
        await asyncio.sleep(0)
        await super().shutdown(sockets)
