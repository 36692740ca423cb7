"""Instants as text: RFC 3339, to the millisecond in what we say, of any precision in what we read."""

from __future__ import annotations

from functools import lru_cache

from bayplan.base.durations import MILLISECOND_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.cluster.timestamps import format_time
from bayplan.objects.meta import parse_time_ns


def format_instant(time_ns: int) -> str:
    """Return nanoseconds since 1970 as ``2026-11-21T12:03:01.204Z``."""
    return f"{format_time(time_ns)[:-1]}.{time_ns % SECOND_NS // MILLISECOND_NS:03d}Z"


@lru_cache(maxsize=4096)
def parse_instant(text: str | None) -> int | None:
    """Return an RFC 3339 time as nanoseconds since 1970; None for none, and for what is no time."""
    try:
        return parse_time_ns(text) if text else None
    except InputError:
        return None
