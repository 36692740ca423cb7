"""Communication with an extender over HTTP, which `bayplan.framework.extender` leaves to its host.

Nothing is retried here: upstream does not retry either, and the pod is tried again after its backoff. Errors have the
words of Go's HTTP client, because events show them.
"""

from __future__ import annotations

import errno
import ipaddress
import ssl
import zlib
from collections.abc import Mapping
from functools import cache
from time import monotonic

import httpx
import msgspec

from bayplan.base.bounded_body import BodyTooLarge, BoundedBody
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.json import GoJsonError, decode_first
from bayplan.base.tls_problems import tls_problem
from bayplan.extender.tls import tls_context
from bayplan.framework.configuration.document import Extender
from bayplan.framework.extender_answers import ExtenderFailure

AWAITING = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
READING = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
MAX_REDIRECTS = 10
MIN_ANSWER_LIMIT_BYTES = 16 << 20
ANSWER_LIMIT_FACTOR = 4
"""A response names only nodes and victims of its request, so its length is limited to this multiple of the request's.

Responses up to `MIN_ANSWER_LIMIT_BYTES` are always accepted.
"""


_DIALS = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ENETUNREACH: "connect: network is unreachable",
}


class ExtenderClient:
    """The HTTP client of one extender.

    Args:
        configuration: the extender's URL, timeout and TLS settings.
    """

    def __init__(self, configuration: Extender) -> None:
        self._configuration = configuration
        self._client: httpx.Client | None = None
        self._timeout_seconds = configuration.http_timeout_ns / SECOND_NS
        self._encoder = msgspec.json.Encoder()

    def send(self, verb: str, arguments: Mapping[str, object]) -> object:
        """Post arguments to a verb; return the decoded response. Raise ExtenderFailure if there is none."""
        url = f"{self._configuration.url_prefix.rstrip('/')}/{verb}"
        try:
            status, body = self._post(url, self._encoder.encode(arguments))
        except _BodyTimeout:
            raise ExtenderFailure(READING) from None
        except BodyTooLarge as problem:
            raise ExtenderFailure(f'Post "{url}": {problem}') from None
        except zlib.error:
            raise ExtenderFailure("gzip: invalid header") from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise ExtenderFailure(f'Post "{url}": {self._explained(problem)}') from None
        if status != httpx.codes.OK:
            raise ExtenderFailure(f"failed {verb} with extender at URL {url}, code {status}")
        try:
            return decode_first(body)
        except GoJsonError as problem:
            raise ExtenderFailure(str(problem)) from None

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _post(self, url: str, content: bytes) -> tuple[int, bytes]:
        """Return status and body. As in Go, the timeout applies to the whole request."""
        deadline = monotonic() + self._timeout_seconds
        headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
        name = self._configuration.tls_config.server_name if self._configuration.tls_config is not None else ""
        extensions = {"sni_hostname": name} if name else {}
        client = self._http()
        request = client.build_request("POST", url, content=content, headers=headers, extensions=extensions)
        response = self._sent(client, request, deadline)
        try:
            if response.status_code != httpx.codes.OK:
                return response.status_code, b""
            limit = max(MIN_ANSWER_LIMIT_BYTES, ANSWER_LIMIT_FACTOR * len(content))
            return response.status_code, _read(response, limit, deadline)
        finally:
            response.close()

    def _sent(self, client: httpx.Client, request: httpx.Request, deadline: float) -> httpx.Response:
        """Follow redirects; return the last response, with its body unread."""
        for _ in range(MAX_REDIRECTS + 1):
            response = client.send(request, stream=True)
            following = response.next_request
            if following is None:
                return response
            response.close()
            if monotonic() > deadline:
                raise httpx.ReadTimeout("", request=following)
            request = following
        raise httpx.TooManyRedirects("", request=request)

    def _http(self) -> httpx.Client:
        if self._client is None:
            url = httpx.URL(self._configuration.url_prefix)
            self._client = httpx.Client(
                # Creating a context reads all certificate authorities of the machine, so those that may never be used
                # share one.
                verify=tls_context(self._configuration) if url.scheme == "https" else _usual_context(),
                timeout=self._timeout_seconds,
                follow_redirects=False,
                # The environment defines proxies, but connections to this machine never use one.
                trust_env=not _is_loopback(url.host),
            )
        return self._client

    def _explained(self, problem: Exception) -> str:
        """Return the error text of Go's HTTP client if it is known, else Bayplan's."""
        url = httpx.URL(self._configuration.url_prefix)
        cause = _root(problem)
        if isinstance(problem, httpx.TimeoutException):
            return AWAITING
        if isinstance(cause, ssl.SSLError):
            tls = self._configuration.tls_config
            return tls_problem(cause, (tls.server_name if tls is not None else "") or url.host)
        if isinstance(problem, httpx.ConnectError) and isinstance(cause, OSError):
            port = url.port or (443 if url.scheme == "https" else 80)
            if cause.errno in _DIALS:
                return f"dial tcp {url.host}:{port}: {_DIALS[cause.errno]}"
            if cause.errno is not None and cause.errno < 0:
                return f"dial tcp: lookup {url.host}: no such host"
        if isinstance(problem, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
            reset = isinstance(cause, OSError) and cause.errno == errno.ECONNRESET
            return "read: connection reset by peer" if reset else "EOF"
        if isinstance(problem, httpx.UnsupportedProtocol):
            return f'unsupported protocol scheme "{url.scheme}"'
        if isinstance(problem, httpx.TooManyRedirects):
            return f"stopped after {MAX_REDIRECTS} redirects"
        return str(problem)


@cache
def _usual_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _read(response: httpx.Response, limit: int, deadline: float) -> bytes:
    """Return the body of a response.

    Raises:
        BodyTooLarge, zlib.error: see `BoundedBody`.
        _BodyTimeout: the body does not arrive in time.
    """
    body, late = BoundedBody(limit, response.headers.get("content-encoding", "")), False
    try:
        for chunk in response.iter_raw():
            if late:
                raise _BodyTimeout
            body.add(chunk)
            # The piece that arrived too late is still read, but no other.
            late = monotonic() > deadline
    except httpx.ReadTimeout:
        raise _BodyTimeout from None
    except httpx.RemoteProtocolError:
        # The server closed the connection in the middle of the body. What has arrived is decoded, which then fails.
        pass
    return body.joined()


class _BodyTimeout(Exception):
    """The body of the response did not arrive in time."""


def _root(problem: BaseException) -> BaseException:
    """Return the exception that caused all others."""
    while (cause := problem.__cause__ or problem.__context__) is not None:
        problem = cause
    return problem


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
