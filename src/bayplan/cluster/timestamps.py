"""Timestamps as the API writes them: RFC 3339, UTC, whole seconds.

Kubernetes cuts ``metav1.Time`` to seconds when an object goes through the API server; so do objects of the virtual
cluster. Timers (run times, delays, back-off) count in nanoseconds beside them.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

SECOND_NS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1)


def format_time(time_ns: int) -> str:
    """Return the timestamp of a time in nanoseconds since 1970, cut to the second: ``2026-01-31T12:00:00Z``."""
    return _format_second(time_ns // SECOND_NS)


@lru_cache(maxsize=4096)
def _format_second(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat(timespec="seconds") + "Z"


def format_time_in(time_ns: int, zone: tzinfo) -> str:
    """Return the timestamp in a zone, with its offset (``Z`` for zero), as Go's RFC3339 layout writes it."""
    local = datetime.fromtimestamp(time_ns // SECOND_NS, zone)
    text = local.isoformat(timespec="seconds")
    return text.replace("+00:00", "Z") if text.endswith("+00:00") else text
