"""The API server: a store (in memory or durable), the API over it, and uvicorn in front."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from bayplan.apiserver.admission.outgoing import Outgoing
from bayplan.apiserver.admission.targets import Targets
from bayplan.apiserver.http.access import LOOPBACK
from bayplan.apiserver.http.application import Application, Mount
from bayplan.apiserver.http.graceful import GracefulServer
from bayplan.apiserver.http.hook_client import HookClient
from bayplan.apiserver.http.kubeconfig import kubeconfig_entry
from bayplan.apiserver.http.limits import ConnectionTable, HttpLimits, RateLimit, raise_descriptor_limit
from bayplan.apiserver.http.protocol import WebSocketProtocol, limited_protocol
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.api_endpoints import advertised_address
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.metrics_endpoints import MetricsEndpoints
from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError
from bayplan.base.garbage_collector import frozen_objects
from bayplan.base.ports import check_port
from bayplan.base.web_origin import check_origins


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Options of a server.

    Attributes:
        listen: the address to listen on; an address other than loopback requires a token.
        port: the port; 0 for a free port.
        token: the token that clients must send; empty allows every client on this machine.
        certificate, key: the PEM files for TLS; both or neither.
        store: the file of a durable store; None for a store in memory.
        rate_limit: the requests per second of each client; 0 for no limit.
        allowed_origins: the origins of web pages that may write, in addition to the server's own.
        limits: the limits on clients before they are authenticated.
        webhooks: the allowed targets of webhooks, see `Targets`; none by default.
        admits_service_accounts: whether to run service account admission: a pod's service account must exist, and its
            token is mounted.
    """

    listen: str = "127.0.0.1"
    port: int = 6443
    token: str = ""
    certificate: Path | None = None
    key: Path | None = None
    store: Path | None = None
    rate_limit: float = 0.0
    allowed_origins: tuple[str, ...] = ()
    limits: HttpLimits = field(default_factory=HttpLimits)
    webhooks: tuple[str, ...] = ()
    admits_service_accounts: bool = False


def check_options(options: ServerOptions) -> None:
    """Raise if options are invalid, conflict, or would give other hosts access without a token.

    Raises:
        InputError: an option is invalid or unsafe.
    """
    check_port(options.port)
    check_origins(options.allowed_origins, "--allow-origin")
    Targets(options.webhooks)
    if options.rate_limit < 0:
        raise InputError("--rate-limit", got=f"{options.rate_limit:g}", wanted="requests per second, or 0 for no limit")
    if options.listen not in LOOPBACK and not options.token:
        hint = f"--token {secrets.token_urlsafe(12)}"
        raise InputError(
            "--listen", wanted="a loopback address, or --token", got=f"{options.listen} without a token", hint=hint
        )
    if (options.certificate is None) != (options.key is None):
        raise InputError("--tls-cert and --tls-key", got="only one of them", wanted="both or neither")
    if options.certificate is not None and options.key is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(options.certificate, options.key)
        except (OSError, ssl.SSLError) as problem:
            raise InputError("--tls-cert and --tls-key", got=str(problem), wanted="a certificate and its key") from None


class ApiServer:
    """The API server. Call `run` to serve requests.

    Args:
        options: the options.
        clock: returns the server's time in seconds since 1970.

    Attributes:
        backend: the backend, for loading objects before the server runs.
        api: the API that handles requests, for callers in this process.
        connections: the open connections.
        url: the URL of the server. The constructor binds the socket, so the URL is known before the server runs.

    Raises:
        InputError: the options are invalid, the address is in use, or the file is not a usable store.
    """

    def __init__(self, options: ServerOptions, *, clock: Callable[[], float] = time.time) -> None:
        check_options(options)
        self.options = options
        self._socket = _bind(options)
        self.connections = ConnectionTable(options.limits)
        store = Store()
        self._recorder: DurableRecorder | None = None
        if options.store is not None:
            self._recorder = DurableRecorder(options.store, store, on_failure=self._disk_failed)
        self.backend = Backend(store, clock=clock)
        self.backend.advertised = (advertised_address(options.listen), self._socket.getsockname()[1])
        self.backend.outgoing = Outgoing(Targets(options.webhooks))
        self.backend.admits_service_accounts = options.admits_service_accounts
        bootstrap(self.backend)
        MetricsEndpoints(self.backend).publish()
        self.url = self._url()
        scheme, _, address = self.url.partition("://")
        self.api = Api(self.backend, address=address, scheme=scheme)
        limit = RateLimit(options.rate_limit) if options.rate_limit else None
        self._application = Application(
            self.api,
            token=options.token,
            allowed_origins=options.allowed_origins,
            recorder=self._recorder,
            rate_limit=limit,
        )
        self._server: GracefulServer | None = None
        self._hooks: HookClient | None = None
        self._failure: Exception | None = None

    def mount(self, application: Mount, *, on_end: Callable[[], None] | None = None) -> None:
        """Serve another application in addition to the API. The first application that accepts a request handles it.

        Args:
            application: the application.
            on_end: ends the application's streams when the server stops.
        """
        self._application.mounts.append(application)
        if on_end is not None:
            self._application.on_end.append(on_end)

    def until_durable(self, revision: int) -> asyncio.Future[None] | None:
        """Return a future that is done when a revision is durable, or None if it already is. For in-process writers."""
        return None if self._recorder is None else self._recorder.until_durable(revision)

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
        """Serve requests until SIGINT, SIGTERM or `stop`, then close the server.

        Args:
            on_ready: called when the server accepts requests.

        Raises:
            InputError: a write of a durable store to disk failed.
        """
        if self._recorder is not None:
            self._recorder.flush()
        certificate, key = self.options.certificate, self.options.key
        raise_descriptor_limit()
        config = uvicorn.Config(
            self._application,
            log_level="warning",
            access_log=False,
            http=limited_protocol(self.connections, self._application),
            ws=WebSocketProtocol,
            proxy_headers=False,
            timeout_keep_alive=90,
            server_header=False,
            ssl_certfile=None if certificate is None else str(certificate),
            ssl_keyfile=None if key is None else str(key),
        )
        self._server = GracefulServer(
            config, on_ready=partial(self._begin, on_ready), on_end=self._end, on_closed=self._close_store
        )
        # Loaded objects live as long as the server, so exempt them from repeated garbage collection.
        gc.collect()
        thresholds = gc.get_threshold()
        try:
            with frozen_objects(), contextlib.suppress(KeyboardInterrupt):
                gc.set_threshold(50_000, 20, 100)
                self._server.run(sockets=[self._socket])
        finally:
            gc.set_threshold(*thresholds)
            self.close()
        if isinstance(self._failure, InputError):
            raise self._failure
        if self._failure is not None:
            raise InputError(
                f"--store {self.options.store}: the last write failed: {self._failure}",
                hint="free space on the disk, then start the server again",
            )

    def _begin(self, on_ready: Callable[[], None] | None) -> None:
        """Create the webhook client on the event loop if webhooks are allowed, then call `on_ready`."""
        if self.backend.outgoing.is_on:
            self._hooks = self.api.calls = HookClient(self.backend.outgoing)
        if on_ready is not None:
            on_ready()

    def _end(self) -> None:
        if self._hooks is not None:
            self._hooks.close()
        self._application.end_streams()

    def stop(self) -> None:
        """Stop a running server. Any thread may call this."""
        if self._server is not None:
            self._server.should_exit = True

    def close(self) -> None:
        """Close the socket and the store."""
        self._socket.close()
        self._close_store()

    def _close_store(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig for the server."""
        certificate = self.options.certificate
        authority = "" if certificate is None else str(certificate.resolve())
        return kubeconfig_entry(self.url, token=self.options.token, certificate_authority=authority)


def _bind(options: ServerOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.listen else socket.AF_INET
    try:
        return socket.create_server((options.listen, options.port), family=family, backlog=1024)
    except OSError as problem:
        got = f"{options.listen} port {options.port}: {(problem.strerror or str(problem)).lower()}"
        raise InputError(
            "--listen and --port", got=got, wanted="an available address and port", hint="--port 0"
        ) from None
