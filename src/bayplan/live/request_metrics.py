"""Metrics of the requests to a cluster's API, under the names of client-go."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from bayplan.live.series import Distribution, Tally

_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)


class RequestMetrics:
    """Metrics of API requests: see `bayplan.client.connection.RequestObserver`.

    Used by the event loop of the connections only.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        where = ("host", "verb")
        self._requests = Tally(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "host", "method"),
            registry=registry,
        )
        self._seconds = Distribution(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            where,
            buckets=_SECONDS,
            registry=registry,
        )
        self._waited = Distribution(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            where,
            buckets=_SECONDS,
            registry=registry,
        )
        self._request_bytes = Distribution(
            "rest_client_request_size_bytes",
            "Request size in bytes. Broken down by verb and host.",
            where,
            buckets=_BYTES,
            registry=registry,
        )
        self._response_bytes = Distribution(
            "rest_client_response_size_bytes",
            "Response size in bytes. Broken down by verb and host.",
            where,
            buckets=_BYTES,
            registry=registry,
        )

    def waited(self, host: str, method: str, seconds: float) -> None:
        """Record how long a request waited for the rate limit."""
        self._waited.observe(seconds, host, method)

    def answered(
        self, host: str, method: str, code: str, seconds: float, request_bytes: int, response_bytes: int
    ) -> None:
        """Record a response, with the bytes of request and response."""
        self._requests.add(code, host, method)
        self._seconds.observe(seconds, host, method)
        self._request_bytes.observe(request_bytes, host, method)
        self._response_bytes.observe(response_bytes, host, method)

    def opened(self, host: str, code: str) -> None:
        """Record that a stream was opened or refused: it counts as a request without a duration."""
        self._requests.add(code, host, "GET")
