"""Timestamps as the API writes them: RFC 3339, UTC, whole seconds.

Kubernetes cuts ``metav1.Time`` to seconds when an object goes through the API server; so do objects of the virtual
cluster. Timers (run times, delays, back-off) count in nanoseconds beside them.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from bayplan.base.durations import SECOND_NS

_DAY_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1)
_DIGITS = [f"{number:02}" for number in range(60)]

# An instant of a simulation is written several times, and hardly ever again.
_known: dict[int, str] = {}
_MOST_KNOWN = 256


def format_time(time_ns: int) -> str:
    """Return the timestamp of a time in nanoseconds since 1970, cut to the second: ``2026-01-31T12:00:00Z``."""
    second = time_ns // SECOND_NS
    text = _known.get(second)
    if text is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        text = _known[second] = _format_second(second)
    return text


def _format_second(second: int) -> str:
    day, second = divmod(second, _DAY_SECONDS)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{_format_day(day)}T{_DIGITS[hour]}:{_DIGITS[minute]}:{_DIGITS[second]}Z"


@lru_cache(maxsize=4096)
def _format_day(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).date().isoformat()


def format_time_in(time_ns: int, zone: tzinfo) -> str:
    """Return the timestamp in a zone, with its offset (``Z`` for zero), as Go's RFC3339 layout writes it."""
    local = datetime.fromtimestamp(time_ns // SECOND_NS, zone)
    text = local.isoformat(timespec="seconds")
    return text.replace("+00:00", "Z") if text.endswith("+00:00") else text
