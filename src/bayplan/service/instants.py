"""Instants as text: RFC 3339, to the millisecond in what we say, of any precision in what we read."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from bayplan.cluster.timestamps import format_time

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000


def format_instant(time_ns: int) -> str:
    """Return nanoseconds since 1970 as ``2026-11-21T12:03:01.204Z``."""
    return f"{format_time(time_ns)[:-1]}.{time_ns % SECOND_NS // MILLISECOND_NS:03d}Z"


@lru_cache(maxsize=4096)
def parse_time_ns(text: str | None) -> int | None:
    """Return an RFC 3339 time as nanoseconds since 1970; None for none, and for what is no time."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * SECOND_NS + moment.microsecond * 1000
