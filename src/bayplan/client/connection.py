"""HTTP to an API server: requests with their answers, streams of lines, within the client's rate limit.

HTTP itself is aiohttp's business (docs/dependencies.md has the measurement). An answer that says no is an answer; only streams
raise, and only `StreamRefused` and `ConnectionLost`.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Protocol, Self

import aiohttp
from yarl import URL

from bayplan.base.token_bucket import TokenBucket
from bayplan.client.cluster_access import ClusterAccess
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse

DEFAULT_QPS = 50.0
DEFAULT_BURST = 100
REQUEST_SECONDS = 60.0
"""So long an answer may take; the server itself gives up after that."""

CONNECT_SECONDS = 30.0
MAX_RESPONSE_BYTES = 1 << 30
"""Of one answer: a list of 200,000 pods in full. A server that sends more, or without end, must not take all memory."""

MAX_LINE_BYTES = 32 << 20
"""Of one line of a stream, which is one object: etcd takes 1.5 MB."""

MAX_CONNECTIONS = 32
MAX_THROTTLED = 10
"""So often a server may say that it has too much to do before that is the answer."""

LEAVE_SECONDS = 0.25
"""So long the end waits for connections with TLS to be closed; aiohttp's documentation names this time."""

SILENCE_SECONDS = 60.0
"""A stream that goes on for so long after it should have ended is dead."""

_UNAUTHORIZED = 401
_TOO_BUSY = (429, 503)


class ConnectionLost(Exception):
    """A stream ended in the middle, or could not be opened. Caught by reflectors."""


class StreamRefused(Exception):
    """The server does not open a stream: `response` says why. Caught by reflectors."""

    def __init__(self, response: ApiResponse) -> None:
        super().__init__(response.message)
        self.response = response


class RequestObserver(Protocol):
    """Who wants to know of requests: metrics."""

    def waited(self, host: str, method: str, seconds: float) -> None:
        """Take in how long a request waited for its turn."""
        ...

    def answered(self, host: str, method: str, code: str, seconds: float, asked: int, told: int) -> None:
        """Take in an answer, and the bytes of both bodies; the code is ``<error>`` where none came."""
        ...

    def opened(self, host: str, code: str) -> None:
        """Take in that a stream was opened, or refused."""
        ...


class ApiConnection:
    """Talks to one API server. Belongs to one event loop; close it in the end.

    Args:
        access: where it is, and who we are.
        user_agent: who asks; the API server tells from it who manages a field.
        qps, burst: the rate limit, as in a scheduler's configuration; a negative `qps` is none.
        request_seconds: how long an answer may take.
        observer: is told of every request.
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
    ) -> None:
        self.access = access
        self._observer = observer
        self._host = URL(access.url).authority
        self._user_agent = user_agent
        self._loop = asyncio.get_running_loop()
        self._limiter = TokenBucket(qps, burst, self._loop.time())
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=_socket)
        # Streams have connections of their own; the rest shares some, so that a burst does not open thousands.
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=request_seconds, sock_connect=CONNECT_SECONDS),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        if self.access.tls is not None:
            # Connections with TLS take leave of the other side first, which nobody can wait for.
            await asyncio.sleep(LEAVE_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- requests -----------------------------------------------------------------------------------------------------

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Return the answer to a request, with the status `NO_ANSWER` where none came.

        Where the server is too busy it is asked again, when it says. A read that loses its connection is asked once more.
        """
        response = ApiResponse(NO_ANSWER)
        renewed = False
        for attempt in range(MAX_THROTTLED + 1):
            await self._wait_for_turn(request.method)
            async with self._slots:
                began = self._loop.time()
                response, retry_after = await self._ask(request)
            if self._observer is not None:
                seconds = self._loop.time() - began
                self._observer.answered(
                    self._host, request.method, _code(response.status), seconds, len(request.body), len(response.body)
                )
            if response.status == _UNAUTHORIZED and not renewed:
                renewed = True
                if await self.access.refresh():
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

    async def _ask(self, request: ApiRequest) -> tuple[ApiResponse, float | None]:
        """Ask once; return the answer, and after how many seconds to ask again where the server wants that."""
        url = self._url(request.path, request.query)
        headers = await self._headers()
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
            ) as answer:
                response = ApiResponse(answer.status, await _read(answer))
                return response, _retry_after(answer)
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            method = request.method.capitalize()
            return ApiResponse(NO_ANSWER, f'{method} "{url}": {_told(problem)}'.encode()), None

    def _url(self, path: str, query: str) -> URL:
        # Paths and queries are encoded already by whoever made them.
        return URL(f"{self.access.url}{path}?{query}" if query else self.access.url + path, encoded=True)

    def _tls(self) -> bool | aiohttp.Fingerprint:
        tls: bool | aiohttp.Fingerprint = True
        if self.access.tls is not None:
            tls = self.access.tls  # type: ignore[assignment]  # A context is what aiohttp takes here, too.
        return tls

    async def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": self._user_agent, "Accept": "application/json"}
        authorization = await self.access.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers

    # --- streams ------------------------------------------------------------------------------------------------------

    async def stream(self, path: str, query: str, *, seconds: float) -> AsyncGenerator[list[bytes], None]:
        """Yield the lines of a stream, those that came together in one list, until the server ends it.

        Args:
            path: of the collection.
            query: with ``watch=1`` and ``timeoutSeconds``.
            seconds: that time-out; a stream that is silent for much longer is given up.

        Raises:
            StreamRefused: the server says no.
            ConnectionLost: there is no server, or it went away.
        """
        await self._wait_for_turn("GET")
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=seconds + SILENCE_SECONDS)
        url = self._url(path, query)
        try:
            async with self._session.get(
                url,
                headers=await self._headers(),
                ssl=self._tls(),
                server_hostname=self.access.server_name,
                proxy=self.access.proxy,
                allow_redirects=False,
                timeout=timeout,
            ) as answer:
                if self._observer is not None:
                    self._observer.opened(self._host, _code(answer.status))
                if answer.status != 200:
                    response = ApiResponse(answer.status, await _read(answer))
                    if response.status == _UNAUTHORIZED and await self.access.refresh():
                        raise ConnectionLost("credentials were renewed")
                    raise StreamRefused(response)
                unfinished, size = list[bytes](), 0
                while chunk := await answer.content.readany():
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
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            raise ConnectionLost(f'Get "{url}": {_told(problem)}') from None


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer.

    Raises:
        aiohttp.ClientPayloadError: it is longer than `MAX_RESPONSE_BYTES`.
    """
    pieces, size = list[bytes](), 0
    while piece := await answer.content.readany():
        pieces.append(piece)
        size += len(piece)
        if size > MAX_RESPONSE_BYTES:
            raise aiohttp.ClientPayloadError(f"the answer is longer than {MAX_RESPONSE_BYTES:,} bytes")
    return b"".join(pieces)


def _socket(address: tuple[object, ...]) -> socket.socket:
    """Make a socket that finds out by itself that the other side is gone."""
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
    """Return a status as client-go's metrics tell it."""
    return str(status) if status != NO_ANSWER else "<error>"


def _retry_after(answer: aiohttp.ClientResponse) -> float | None:
    """Return when to ask again, in seconds, where the server is too busy and says that."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if answer.status in _TOO_BUSY and text.isdecimal() else None


def _told(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "context deadline exceeded"
    number = getattr(getattr(problem, "os_error", problem), "errno", None)
    text = os.strerror(number) if isinstance(number, int) and number > 0 else str(problem) or type(problem).__name__
    return text[:1].lower() + text[1:]
