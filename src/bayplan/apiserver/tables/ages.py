"""Ages as kubectl shows them: `5s`, `3m20s`, `4d`."""

from __future__ import annotations

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import parse_time_ns

UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * 24


def age(timestamp: object, now: float) -> str:
    """Return how long ago a timestamp was, as kubectl shows it; `<unknown>` without a timestamp.

    Args:
        timestamp: the timestamp in an object, or None.
        now: the current time in seconds since 1970.
    """
    if not isinstance(timestamp, str) or not timestamp:
        return UNKNOWN
    return human_duration(now - seconds_of(timestamp))


def seconds_of(timestamp: str) -> float:
    """Return a timestamp as seconds since 1970."""
    return parse_time_ns(timestamp) / SECOND_NS


def human_duration(duration: float) -> str:
    """Return a duration in seconds as text with one or two units."""
    seconds = int(duration)
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    minutes, hours = seconds // _MINUTE, seconds // _HOUR
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if hours < 2 * _YEAR:
        return f"{days}d"
    years = hours // _YEAR
    return _pair(years, "y", days % 365, "d") if hours < 8 * _YEAR else f"{years}y"


def _pair(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"
