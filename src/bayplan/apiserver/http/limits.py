"""Limits of HTTP before a request is authenticated: header size and time, number of connections, rate of each client."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Hashable
from typing import Protocol

import msgspec

from bayplan.base.token_bucket import TokenBucket

MAX_CONNECTIONS = 16_384
"""More are never taken by default: each costs about 15 kB."""

RESERVED_DESCRIPTORS = 128
"""File descriptors that connections of clients leave for the store, extenders, plugins and followed clusters."""

MAX_REFUSALS = 64
"""Connections that get the answer that there is no room, at the same time; more are closed without an answer. They take half of the
reserved descriptors."""

_MIN_CONNECTIONS = 16
_LOG_INTERVAL_S = 10.0
_DESCRIPTORS = ("/proc/self/fd", "/dev/fd")
_log = logging.getLogger("bayplan.apiserver")


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on unauthenticated clients. Defaults are kube-apiserver's, if it has such a limit.

    Attributes:
        header_bytes: of request line and header fields; Go's `DefaultMaxHeaderBytes`.
        header_seconds: until the header is complete; upstream's `ReadHeaderTimeout`.
        body_seconds: until the body is complete; upstream's `--request-timeout`.
        body_bytes_per_second: every this many bytes extend the body's deadline by a second, for imports over slow connections.
        unfinished_bytes: of all headers together that are not complete.
        connections: at the same time; 0 for as many as the file descriptors allow, up to `MAX_CONNECTIONS`.
    """

    header_bytes: int = 1 << 20
    header_seconds: float = 32.0
    body_seconds: float = 60.0
    body_bytes_per_second: int = 50_000
    unfinished_bytes: int = 64 << 20
    connections: int = 0


class Closable(Hashable, Protocol):
    """A connection."""

    def close_idle(self) -> None:
        """Close it: no request is being answered on it."""
        ...


class ConnectionTable:
    """The connections of a server, and which of them wait for a request.

    Args:
        limits: of connections and headers.
        clock: returns seconds; never goes back.

    Attributes:
        limits: as given, with the number of connections worked out.
        open: number of connections, WebSockets and those that are refused for what they sent included.
        unfinished_bytes: of all headers that are not complete.
        closed: how many connections were closed to make room. refused: how many found no room.
        refusals: connections without room that are open until they have the answer.
    """

    def __init__(self, limits: HttpLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.max_connections = limits.connections or default_connections()
        self.open = 0
        self.unfinished_bytes = 0
        self.closed = 0
        self.refused = 0
        self.refusals = 0
        # In the order in which they began to wait.
        self._waiting: dict[Closable, None] = {}
        self._clock = clock
        self._logged_at = -_LOG_INTERVAL_S

    def add(self, connection: Closable) -> bool:
        """Take a connection in; return whether there is room for it. The longest idle one makes room if need be."""
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

    def begin_refusal(self) -> bool:
        """Count a connection without room that is to get an answer; return False if too many are getting one."""
        if self.refusals >= MAX_REFUSALS:
            return False
        self.refusals += 1
        return True

    def end_refusal(self) -> None:
        """Forget a connection that was counted by `begin_refusal`."""
        self.refusals -= 1

    def discard(self, connection: Closable) -> None:
        """Forget a connection that was taken in."""
        self.open -= 1
        self._waiting.pop(connection, None)

    def wait(self, connection: Closable) -> None:
        """Count a connection as waiting for a request."""
        self._waiting[connection] = None

    def work(self, connection: Closable) -> None:
        """Count a connection as having a request that is answered."""
        self._waiting.pop(connection, None)

    def _log_full(self) -> None:
        now = self._clock()
        if now - self._logged_at >= _LOG_INTERVAL_S:
            self._logged_at = now
            _log.warning(
                "%d connections are open, as many as allowed: idle ones are closed to make room (%d so far), others refused (%d)",
                self.open,
                self.closed,
                self.refused,
            )


def default_connections() -> int:
    """Return how many connections the limit of file descriptors allows, up to `MAX_CONNECTIONS`."""
    limit = descriptor_limit()
    return (
        MAX_CONNECTIONS if limit is None else max(_MIN_CONNECTIONS, min(MAX_CONNECTIONS, limit - RESERVED_DESCRIPTORS))
    )


def descriptor_limit() -> int | None:
    """Return how many file descriptors the process may have; None for any number, or on systems without that limit."""
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit() -> None:
    """Let the process have as many file descriptors as its hard limit allows, as programs in Go do at their start."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ImportError, OSError, ValueError):
        pass


class DescriptorWatch:
    """Logs when file descriptors run out: the kernel then drops new connections, and nothing else reports it.

    Args:
        limit: of the process. count: returns how many are open; raises OSError if there is none left to count with.
    """

    SHARE = 0.9

    def __init__(self, limit: int | None, count: Callable[[], int] | None = None) -> None:
        self._limit = limit
        self._count = count or open_descriptors
        self._scarce = False

    def check(self, connections: int) -> bool:
        """Log if almost all are in use, once until they are not; return whether they are.

        Args:
            connections: of clients, for the message.
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
    """Return how many file descriptors the process has open."""
    folder = next((each for each in _DESCRIPTORS if os.path.isdir(each)), "")
    if not folder:
        raise FileNotFoundError(_DESCRIPTORS[0])
    return len(os.listdir(folder))


_MAX_CLIENTS = 4096
_BURST_SECONDS = 2.0


class RateLimit:
    """A limit.

    Args:
        per_second: requests of one client; a pause lets it save up those of two seconds.
        clock: returns seconds; never goes back.
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, client: str) -> bool:
        """Take one token from a client's bucket; return whether there was one left."""
        now = self._clock()
        bucket = self._buckets.get(client)
        if bucket is None:
            if len(self._buckets) >= _MAX_CLIENTS:
                self._forget_full(now)
            bucket = self._buckets[client] = TokenBucket(self._per_second, self._per_second * _BURST_SECONDS, now)
        return bucket.take(now)

    def _forget_full(self, now: float) -> None:
        """Forget clients whose buckets are full again; all of them, where none is."""
        kept = {client: bucket for client, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._buckets = kept if len(kept) < _MAX_CLIENTS else {}
