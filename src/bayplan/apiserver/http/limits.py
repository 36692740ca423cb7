"""HTTP limits that apply before authentication: header size and time, number of connections, requests per client."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Hashable
from typing import Protocol

import msgspec

from bayplan.base.token_bucket import TokenBucket

MAX_CONNECTIONS = 16_384
"""Default maximum number of open connections. Each takes about 15 kB."""

RESERVED_DESCRIPTORS = 128
"""File descriptors reserved for the store, extenders, plugins and source clusters."""

MAX_REJECTIONS = 64
"""Maximum number of connections that get a 503 response at the same time, which is half of the reserved descriptors.

Further connections are closed without a response.
"""

_MIN_CONNECTIONS = 16
_LOG_INTERVAL_S = 10.0
_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")
_log = logging.getLogger("bayplan.apiserver")


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on clients before they are authenticated. A limit that kube-apiserver has, too, has its default.

    Attributes:
        header_bytes: the size limit of request line and header fields; Go's `DefaultMaxHeaderBytes`.
        header_seconds: the time limit of the header; upstream's `ReadHeaderTimeout`.
        body_seconds: the time limit of the body; upstream's `--request-timeout`.
        body_bytes_per_second: the number of received bytes that extend the time limit of the body by one second, for
            imports over slow connections.
        unfinished_bytes: the total size limit of all incomplete headers.
        connections: the maximum number of open connections; 0 for as many as file descriptors allow, up to
            `MAX_CONNECTIONS`.
    """

    header_bytes: int = 1 << 20
    header_seconds: float = 32.0
    body_seconds: float = 60.0
    body_bytes_per_second: int = 50_000
    unfinished_bytes: int = 64 << 20
    connections: int = 0


class Closable(Hashable, Protocol):
    """A connection that the table can close while it is idle."""

    def close_idle(self) -> None:
        """Close the connection, which has no request in progress."""
        ...


class ConnectionTable:
    """The open connections of a server, and which of them are idle.

    Args:
        limits: the limits of connections and headers.
        clock: returns monotonic seconds.

    Attributes:
        limits: the given limits.
        max_connections: the maximum number of open connections.
        open: the number of open connections, including WebSockets.
        unfinished_bytes: the total size of all incomplete headers.
        closed: the number of idle connections closed to make room.
        refused: the number of connections rejected for lack of room.
        rejections: the number of rejected connections that are still open to receive the response.
        direct: the number of requests that were answered directly (`bayplan.apiserver.http.direct`).
        unparsed: the number of direct requests that repeated an earlier head, so that the HTTP parser was not needed
            (`bayplan.apiserver.http.request_head`).
    """

    def __init__(self, limits: HttpLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.max_connections = limits.connections or default_connections()
        self.open = 0
        self.unfinished_bytes = 0
        self.closed = 0
        self.refused = 0
        self.rejections = 0
        self.direct = 0
        self.unparsed = 0
        # Idle connections, in the order in which they became idle.
        self._waiting: dict[Closable, None] = {}
        self._clock = clock
        self._logged_at = -_LOG_INTERVAL_S

    def add(self, connection: Closable) -> bool:
        """Add a connection, and return whether there is room for it.

        If necessary, close the connection that has been idle longest.
        """
        if self.open >= self.max_connections:
            oldest = next(iter(self._waiting), None)
            self._log_full()
            if oldest is None:
                self.refused += 1
                return False
            self.closed += 1
            del self._waiting[oldest]
            oldest.close_idle()
        self.open += 1
        self._waiting[connection] = None
        return True

    def begin_rejection(self) -> bool:
        """Count a rejected connection that gets a 503 response; return False if too many connections are getting it."""
        if self.rejections >= MAX_REJECTIONS:
            return False
        self.rejections += 1
        return True

    def end_rejection(self) -> None:
        """Stop counting a connection that `begin_rejection` counted."""
        self.rejections -= 1

    def discard(self, connection: Closable) -> None:
        """Remove a connection that was added."""
        self.open -= 1
        self._waiting.pop(connection, None)

    def wait(self, connection: Closable) -> None:
        """Mark a connection as idle."""
        self._waiting[connection] = None

    def work(self, connection: Closable) -> None:
        """Mark a connection as having a request in progress."""
        self._waiting.pop(connection, None)

    def _log_full(self) -> None:
        now = self._clock()
        if now - self._logged_at >= _LOG_INTERVAL_S:
            self._logged_at = now
            _log.warning(
                "%d connections are open, the maximum: idle ones are closed (%d so far) or new ones refused (%d so far)",
                self.open,
                self.closed,
                self.refused,
            )


def default_connections() -> int:
    """Return the number of connections that the file descriptor limit allows, from 16 to `MAX_CONNECTIONS`."""
    limit = descriptor_limit()
    return (
        MAX_CONNECTIONS if limit is None else max(_MIN_CONNECTIONS, min(MAX_CONNECTIONS, limit - RESERVED_DESCRIPTORS))
    )


def descriptor_limit() -> int | None:
    """Return the process's soft limit of file descriptors; None if it is unlimited, or the system has no such limit."""
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Raise the soft limit of file descriptors to the hard limit, as Go programs do when they start."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ImportError, OSError, ValueError):
        pass


class DescriptorWatch:
    """Logs when file descriptors run out. The kernel then drops new connections, and nothing else reports it.

    Args:
        limit: the file descriptor limit of the process; None for no limit.
        count: returns the number of open descriptors; raises OSError if no descriptor is left to count with.
    """

    SHARE = 0.9

    def __init__(self, limit: int | None, count: Callable[[], int] | None = None) -> None:
        self._limit = limit
        self._count = count or open_descriptors
        self._scarce = False

    def check(self, connections: int) -> bool:
        """Return whether at least 90 % of the descriptors are in use, and log when that changes.

        Args:
            connections: the number of client connections, for the message.
        """
        if self._limit is None:
            return False
        try:
            used = self._count()
        except FileNotFoundError:
            return False
        except OSError:
            used = self._limit
        scarce = used >= self._limit * self.SHARE
        if scarce and not self._scarce:
            _log.warning(
                "%d of %d file descriptors are in use, %d of them by clients; without any left, new connections are dropped "
                "and files can't be opened. To allow more, raise the limit (ulimit -n).",
                used,
                self._limit,
                connections,
            )
        elif self._scarce and not scarce:
            _log.warning("file descriptors are available again: %d of %d are in use", used, self._limit)
        self._scarce = scarce
        return scarce


def open_descriptors() -> int:
    """Return the number of file descriptors that the process has open.

    Raises:
        FileNotFoundError: the system does not list them.
    """
    folder = next((each for each in _DESCRIPTORS if os.path.isdir(each)), "")
    if not folder:
        raise FileNotFoundError(_DESCRIPTORS[0])
    return len(os.listdir(folder))


_MAX_CLIENTS = 4096
_BURST_SECONDS = 2.0


class RateLimit:
    """Limits the request rate of each client with token buckets.

    Args:
        per_second: the number of requests per second of one client; a bucket holds the tokens of two seconds.
        clock: returns monotonic seconds.
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, client: str) -> bool:
        """Take a token from a client's bucket, and return whether one was available."""
        now = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            if len(self._buckets) >= _MAX_CLIENTS:
                self._forget_full(now)
            bucket = self._buckets[client] = TokenBucket(self._per_second, self._per_second * _BURST_SECONDS, now)
        return bucket.take(now)

    def _forget_full(self, now: float) -> None:
        """Remove the clients whose buckets are full. If enough clients remain to fill the table, remove all."""
        kept = {client: bucket for client, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._buckets = kept if len(kept) < _MAX_CLIENTS else {}
