"""Speak HTTP to an extender: the conversation that `bayplan.framework.extender` leaves to a host.

Nothing is tried twice: upstream does not either, and a pod whose extender failed comes back after its backoff. Errors are told in
the words of Go's HTTP client, as they end up in events.
"""

from __future__ import annotations

import errno
import ipaddress
import ssl
from collections.abc import Mapping
from functools import cache
from time import monotonic

import httpx
import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_json import GoJsonError, decode_first
from bayplan.extender.tls import tls_context, verification_problem
from bayplan.framework.configuration.document import Extender
from bayplan.framework.extender import ExtenderFailure

AWAITING = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
READING = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
MAX_REDIRECTS = 10

_DIALS = {
    errno.ECONNREFUSED: "connect: connection refused",
    errno.EHOSTUNREACH: "connect: no route to host",
    errno.ENETUNREACH: "connect: network is unreachable",
}


class Conversation:
    """The HTTP side of one extender.

    Args:
        configuration: its URL, time-out and TLS settings.
    """

    def __init__(self, configuration: Extender) -> None:
        self._configuration = configuration
        self._client: httpx.Client | None = None
        self._timeout_seconds = configuration.http_timeout_ns / SECOND_NS
        self._encoder = msgspec.json.Encoder()

    def send(self, verb: str, arguments: Mapping[str, object]) -> object:
        """Post arguments to a verb; return the answer's JSON value, or an `ExtenderFailure`."""
        url = f"{self._configuration.url_prefix.rstrip('/')}/{verb}"
        try:
            status, body = self._post(url, self._encoder.encode(arguments))
        except _BodyTimeout:
            return ExtenderFailure(READING)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            return ExtenderFailure(f'Post "{url}": {self._told(problem)}')
        if status != httpx.codes.OK:
            return ExtenderFailure(f"failed {verb} with extender at URL {url}, code {status}")
        try:
            return decode_first(body)
        except GoJsonError as problem:
            return ExtenderFailure(str(problem))

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _post(self, url: str, content: bytes) -> tuple[int, bytes]:
        """Return the status and the body. The time-out is for all of it, as Go's is."""
        deadline = monotonic() + self._timeout_seconds
        headers = {"Content-Type": "application/json"}
        name = self._configuration.tls_config.server_name if self._configuration.tls_config is not None else ""
        extensions = {"sni_hostname": name} if name else {}
        with self._http().stream("POST", url, content=content, headers=headers, extensions=extensions) as response:
            if response.status_code != httpx.codes.OK:
                return response.status_code, b""
            chunks, late = [], False
            try:
                for chunk in response.iter_bytes():
                    if late:
                        raise _BodyTimeout
                    chunks.append(chunk)
                    # What has come is taken; nothing more is waited for.
                    late = monotonic() > deadline
            except httpx.ReadTimeout:
                raise _BodyTimeout from None
            except httpx.RemoteProtocolError:
                # The server went away in the middle of its answer; what has come of it is decoded, and ends too early.
                pass
            return response.status_code, b"".join(chunks)

    def _http(self) -> httpx.Client:
        if self._client is None:
            url = httpx.URL(self._configuration.url_prefix)
            self._client = httpx.Client(
                # Making a context reads all authorities of the machine: those that may never be needed share one.
                verify=tls_context(self._configuration) if url.scheme == "https" else _usual_context(),
                timeout=self._timeout_seconds,
                follow_redirects=True,
                max_redirects=MAX_REDIRECTS,
                # Proxies come from the environment, but never stand between a machine and itself.
                trust_env=not _is_loopback(url.host),
            )
        return self._client

    def _told(self, problem: Exception) -> str:
        """Return what Go's HTTP client would say, where that is known; else what ours says."""
        url = httpx.URL(self._configuration.url_prefix)
        cause = _root(problem)
        if isinstance(problem, httpx.TimeoutException):
            return AWAITING
        if isinstance(cause, ssl.SSLCertVerificationError):
            tls = self._configuration.tls_config
            return verification_problem(cause, (tls.server_name if tls is not None else "") or url.host)
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            return "http: server gave HTTP response to HTTPS client"
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


class _BodyTimeout(Exception):
    """The answer's body did not come in time."""


def _root(problem: BaseException) -> BaseException:
    """Return the exception that a chain of exceptions began with."""
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
