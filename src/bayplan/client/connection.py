"""HTTP connections to an API server: requests and streams of lines, within the client's rate limit.

The module uses aiohttp (docs/dependencies.md has the measurement). Error responses are returned, not raised. Only
streams raise, and only `StreamRejected` and `ConnectionLost`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import aiohttp
from yarl import URL

from bayplan.base.tls_problems import tls_problem
from bayplan.base.token_bucket import TokenBucket
from bayplan.client.cluster_access import ClusterAccess
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse

DEFAULT_QPS = 50.0
DEFAULT_BURST = 100
REQUEST_SECONDS = 60.0
"""Timeout of a request, equal to the server's timeout."""

CONNECT_SECONDS = 30.0
"""Timeout of connecting; for a stream, this includes the headers of the response."""

MAX_RESPONSE_BYTES = 1 << 30
"""Maximum size of a response, enough for a list of 200,000 pods. Protects memory from servers that send endlessly."""

MAX_LINE_BYTES = 32 << 20
"""Maximum size of a line in a stream, which contains one object. etcd limits objects to 1.5 MB."""

MAX_CONNECTIONS = 32
"""Maximum number of concurrent requests that were sent less than `SLOW_SECONDS` ago."""

SLOW_SECONDS = 0.25
"""A request that takes longer leaves its place to another: slow webhooks for one object must not delay the others."""

MAX_THROTTLED = 10
"""Maximum number of retries after responses with `Retry-After`; the last such response is returned to the caller."""

LEAVE_SECONDS = 0.25
"""Time that `close` waits for TLS connections to close, as aiohttp's documentation recommends."""

PING_AFTER_SECONDS = 30.0
"""Time without data from the server after which it is pinged, as client-go does with HTTP/2."""

PING_SECONDS = 15.0
"""Timeout of a ping, as in client-go; without a response, all streams are closed."""

SILENCE_SECONDS = 150.0
"""Time without data after which a stream is closed even if the server responds to pings, because behind a load balancer
another server may respond. API servers send a bookmark every one to two minutes."""


class Patience(NamedTuple):
    """Timeouts of a connection; see the constants."""

    connect_seconds: float = CONNECT_SECONDS
    ping_after_seconds: float = PING_AFTER_SECONDS
    ping_seconds: float = PING_SECONDS
    silence_seconds: float = SILENCE_SECONDS


PATIENCE = Patience()

_WEB_PAGE = "text/html"
_UNAUTHORIZED = 401
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500


class ConnectionLost(Exception):
    """A stream could not be opened, or ended prematurely. Reflectors catch this."""


class StreamSilent(ConnectionLost):
    """A stream sent nothing for `SILENCE_SECONDS`: the server hangs, or sends no bookmarks."""


class StreamRejected(Exception):
    """The server rejected a stream. Reflectors catch this.

    Attributes:
        response: the server's response.
    """

    def __init__(self, response: ApiResponse) -> None:
        super().__init__(response.message)
        self.response = response


class RequestObserver(Protocol):
    """Receives metrics of requests."""

    def waited(self, host: str, method: str, seconds: float) -> None:
        """Record how many seconds a request waited for the rate limit."""
        ...

    def answered(
        self, host: str, method: str, code: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Record a response, its duration, and the sizes of both bodies; `code` is ``<error>`` without a response."""
        ...

    def opened(self, host: str, code: str) -> None:
        """Record that a stream was opened or rejected with this status code."""
        ...


class ApiConnection:
    """The connections to an API server. Belongs to one event loop, and must be closed.

    Args:
        access: the address and credentials.
        user_agent: the name of the client, from which the API server derives the field manager.
        qps, burst: the rate limit, as in a scheduler's configuration; unlimited if `qps` is negative.
        request_seconds: the timeout of a request.
        observer: receives metrics of requests.
        patience: how long to wait for the server.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        user_agent: str,
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        request_seconds: float = REQUEST_SECONDS,
        observer: RequestObserver | None = None,
        patience: Patience = PATIENCE,
    ) -> None:
        self.access = access
        self._observer = observer
        self._patience = patience
        self._host = URL(access.url).authority
        self._user_agent = user_agent
        self._loop = asyncio.get_running_loop()
        self._limiter = TokenBucket(qps, burst, self._loop.time())
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=_socket)
        # Streams and slow requests have a connection each. Others share a limited number, so that a burst does not open
        # thousands.
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._request_seconds = request_seconds
        self._heard_at = self._loop.time()
        self._streams: dict[aiohttp.ClientResponse, None] = {}
        self._pinging: asyncio.Task[None] | None = None
        self._session = aiohttp.ClientSession(
            connector=connector,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._pinging is not None:
            self._pinging.cancel()
        await self._session.close()
        if self.access.tls is not None:
            # aiohttp closes TLS connections in the background, which cannot be awaited.
            await asyncio.sleep(LEAVE_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- requests -----------------------------------------------------------------------------------------------------

    async def send(self, request: ApiRequest, *, seconds: float | None = None) -> ApiResponse:
        """Send a request, and return the response; the status is `NO_ANSWER` if there was no response.

        `seconds` is the timeout of one attempt, by default that of the connection.

        If a response with status 429, or a server error, states the seconds after which to retry, retry then. If the
        connection is lost, retry a read once. If the credentials are rejected, load them again and retry once.
        """
        response = ApiResponse(NO_ANSWER)
        renewed = False
        for attempt in range(MAX_THROTTLED + 1):
            await self._wait_for_turn(request.method)
            async with _Slot(self._slots):
                began = self._loop.time()
                response, retry_after = await self._send_once(request, seconds or self._request_seconds)
            if self._observer is not None:
                took, sizes = self._loop.time() - began, (len(request.body), len(response.body))
                self._observer.answered(self._host, request.method, _code(response.status), took, *sizes)
            if response.status == _UNAUTHORIZED and not renewed:
                renewed = True
                if await self.access.refresh(began):
                    continue
            lost_read = response.status == NO_ANSWER and request.method == "GET" and not attempt
            if retry_after is None and not lost_read:
                break
            await asyncio.sleep(retry_after or 0.0)
        return response

    async def _wait_for_turn(self, method: str) -> None:
        seconds = self._limiter.reserve(self._loop.time())
        if self._observer is not None:
            self._observer.waited(self._host, method, seconds)
        if seconds:
            await asyncio.sleep(seconds)

    async def _send_once(self, request: ApiRequest, seconds: float) -> tuple[ApiResponse, float | None]:
        """Send a request once.

        Return the response, and the seconds after which to retry, or None if the server does not request that.
        """
        began, url = self._loop.time(), self._url(request.path, request.query)
        method, headers = request.method.capitalize(), await self._headers()
        if request.body:
            headers["Content-Type"] = request.content_type
        try:
            async with self._session.request(
                request.method,
                url,
                data=request.body or None,
                headers=headers,
                ssl=self._tls(),
                server_hostname=self.access.server_name,
                proxy=self.access.proxy,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=self._patience.connect_seconds),
            ) as answer:
                response = ApiResponse(answer.status, await _read(answer))
                self._heard_at = self._loop.time()
                _refuse_web_page(answer)
                return response, _retry_after(answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            await self._refresh_authorities(problem, began)
            return ApiResponse(NO_ANSWER, f'{method} "{url}": {self._problem_text(problem)}'.encode()), None

    async def _refresh_authorities(self, problem: Exception, began: float) -> None:
        """After a request with an untrusted server, load the certificate authorities again: they may have been rotated."""
        if isinstance(problem, aiohttp.ClientConnectorCertificateError):
            await self.access.refresh(began)

    def _problem_text(self, problem: Exception) -> str:
        """Return the description of a problem; like Go, with the proxy if that is what can't be reached."""
        text = _describe(problem)
        if self.access.proxy is not None and isinstance(
            problem, (aiohttp.ClientProxyConnectionError, aiohttp.ClientConnectorDNSError)
        ):
            return f"proxyconnect tcp: dial tcp {problem.host}:{problem.port}: {text}"
        return text

    def _url(self, path: str, query: str) -> URL:
        # The caller has already encoded the path and the query.
        return URL(f"{self.access.url}{path}?{query}" if query else self.access.url + path, encoded=True)

    def _tls(self) -> bool | aiohttp.Fingerprint:
        tls: bool | aiohttp.Fingerprint = True
        if self.access.tls is not None:
            tls = self.access.tls  # type: ignore[assignment]  # aiohttp accepts a context, too.
        return tls

    async def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": self._user_agent, "Accept": "application/json"}
        authorization = await self.access.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers

    # --- streams ------------------------------------------------------------------------------------------------------

    async def stream(self, path: str, query: str) -> AsyncGenerator[list[bytes], None]:
        """Yield an empty list when the stream is open, and its lines until the server ends it.

        Lines that arrive together are in one list.

        Args:
            path: the path of the collection.
            query: the query, with ``watch=1`` and ``timeoutSeconds``.

        Raises:
            StreamRejected: the server rejected the stream.
            StreamSilent: the server sent nothing for too long.
            ConnectionLost: the server is unavailable, or closed the connection.
        """
        await self._wait_for_turn("GET")
        began = self._loop.time()
        if self._pinging is None or self._pinging.done():
            self._pinging = self._loop.create_task(self._ping())
        answer, silence_seconds = None, self._patience.silence_seconds
        try:
            answer = await self._open(self._url(path, query))
            async with answer:
                if self._observer is not None:
                    self._observer.opened(self._host, _code(answer.status))
                if answer.status != 200:
                    response = ApiResponse(answer.status, await _read(answer))
                    if response.status == _UNAUTHORIZED and await self.access.refresh(began):
                        raise ConnectionLost("credentials were renewed")
                    raise StreamRejected(response)
                self._heard_at = self._loop.time()
                _refuse_web_page(answer)
                self._streams[answer] = None
                yield []
                unfinished, size = list[bytes](), 0
                while chunk := await answer.content.readany():
                    self._heard_at = self._loop.time()
                    lines = chunk.split(b"\n")
                    last = lines.pop()
                    if lines:
                        lines[0] = b"".join((*unfinished, lines[0]))
                        unfinished, size = [], 0
                        yield lines
                    unfinished.append(last)
                    size += len(last)
                    if size > MAX_LINE_BYTES:
                        raise ConnectionLost(f"a line of the stream is longer than {MAX_LINE_BYTES:,} bytes")
                if b"".join(unfinished).strip():
                    raise ConnectionLost("the stream ended in the middle of a line")
        except aiohttp.SocketTimeoutError:
            raise StreamSilent(f"{self.access.url}: no data for {silence_seconds:g} s") from None
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            await self._refresh_authorities(problem, began)
            # Without the query, whose random timeout would make each failure of an outage a new problem.
            raise ConnectionLost(f"{self.access.url}: {self._problem_text(problem)}") from None
        finally:
            if answer is not None:
                self._streams.pop(answer, None)

    async def _open(self, url: URL) -> aiohttp.ClientResponse:
        """Return the response when its headers have arrived.

        Raises:
            TimeoutError: they did not arrive in time. The data that follows them may take longer.
        """
        headers, patience = await self._headers(), self._patience
        async with asyncio.timeout(patience.connect_seconds):
            return await self._session.get(
                url,
                headers=headers,
                ssl=self._tls(),
                server_hostname=self.access.server_name,
                proxy=self.access.proxy,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_read=patience.silence_seconds),
            )

    async def _ping(self) -> None:
        """Close the streams when the server neither sends anything nor responds to a ping; any response will do."""
        while True:
            seconds = self._heard_at + self._patience.ping_after_seconds - self._loop.time()
            if seconds > 0.0 or not self._streams:
                await asyncio.sleep(max(seconds, 1.0))
                continue
            began = self._loop.time()
            response, _ = await self._send_once(ApiRequest("GET", "/version"), self._patience.ping_seconds)
            # If data arrived during the ping, the server works, and streams may have been opened.
            if response.status == NO_ANSWER and self._heard_at < began:
                for answer in self._streams:
                    answer.content.set_exception(ConnectionLost(f"{self.access.url} does not respond"))
                    answer.close()


class _Slot:
    """The place of a request among the concurrent ones, until the response arrives or the request is slow."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._slots.acquire()
        self._timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._leave)

    async def __aexit__(self, *problem: object) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._slots.release()


def _refuse_web_page(answer: aiohttp.ClientResponse) -> None:
    """Raise aiohttp.ClientPayloadError if a successful response is a web page, such as the login page of a proxy."""
    if 200 <= answer.status < 300 and answer.content_type == _WEB_PAGE:
        raise aiohttp.ClientPayloadError(
            "the response is a web page; a login proxy may have answered instead of the API server"
        )


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of a response.

    Raises:
        aiohttp.ClientPayloadError: the body is longer than `MAX_RESPONSE_BYTES`.
    """
    pieces, size = list[bytes](), 0
    while piece := await answer.content.readany():
        pieces.append(piece)
        size += len(piece)
        if size > MAX_RESPONSE_BYTES:
            raise aiohttp.ClientPayloadError(f"the answer is longer than {MAX_RESPONSE_BYTES:,} bytes")
    return b"".join(pieces)


def _socket(address: tuple[object, ...]) -> socket.socket:
    """Return a socket with TCP keep-alive, which detects a lost peer."""
    family, kind, protocol = address[0], address[1], address[2]
    made = socket.socket(family, kind, protocol)  # type: ignore[arg-type]
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def _code(status: int) -> str:
    """Return a status code as client-go's metrics show it."""
    return str(status) if status != NO_ANSWER else "<error>"


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    """Return the seconds after which to retry, or None.

    Like client-go (`checkWait` in rest/request.go), retry 429 and all server errors if the response states the seconds.
    """
    text = answer.headers.get("Retry-After", "")
    is_retried = answer.status == _TOO_MANY_REQUESTS or answer.status >= _SERVER_ERRORS
    return float(text) if is_retried and text.isdecimal() else None


def _describe(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "context deadline exceeded"
    if isinstance(problem, aiohttp.ClientPayloadError) and problem.__cause__ is not None:
        return "unexpected EOF"
    if isinstance(problem, aiohttp.ClientHttpProxyError):
        # As in Go. The whole text contains the proxy's password.
        return problem.message
    cause = getattr(problem, "certificate_error", None) or getattr(problem, "os_error", problem)
    if isinstance(cause, ssl.SSLError):
        return tls_problem(cause, str(getattr(problem, "host", "this host")))
    number = getattr(cause, "errno", None)
    if isinstance(number, int) and number > 0:
        text = os.strerror(number)
    else:
        text = getattr(cause, "strerror", None) or str(problem) or type(problem).__name__
    return text[:1].lower() + text[1:]
