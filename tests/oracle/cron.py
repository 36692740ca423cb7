"""A naive implementation of cron schedules in UTC that checks every minute."""

from __future__ import annotations

from datetime import UTC, datetime

_LOW = (0, 0, 1, 1, 0)
_HIGH = (59, 23, 31, 12, 6)


def _values(text: str, low: int, high: int) -> set[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        start = low if first == "*" else int(first)
        end = high if first == "*" or (step and not dash) else int(last or first)
        values.update(range(start, end + 1, int(step or 1)))
    return values


def matches(schedule: str, minute: int) -> bool:
    """Return whether a minute, counted from 1970, matches a schedule of five fields."""
    fields = schedule.split()
    time = datetime.fromtimestamp(minute * 60, UTC)
    now = (time.minute, time.hour, time.day, time.month, time.isoweekday() % 7)
    hits = [value in _values(text, low, high) for value, text, low, high in zip(now, fields, _LOW, _HIGH, strict=True)]
    # A field of days restricts them if none of its parts is a bare star.
    bare = [any(part in ("*", "*/1") for part in fields[index].split(",")) for index in (2, 4)]
    day = hits[2] and hits[4] if any(bare) else hits[2] or hits[4]
    return hits[0] and hits[1] and hits[3] and day
