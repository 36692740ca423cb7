"""Times as the API writes and reads them: RFC 3339, `metav1.Time` in whole seconds, and `metav1.MicroTime`.

Kubernetes truncates every `metav1.Time` to seconds when an object passes through the API server, and so does the
virtual cluster. Timers (run times, delays, backoffs) count nanoseconds.
"""

from __future__ import annotations

import re
from calendar import timegm
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

from bayplan.base.durations import MILLISECOND_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.quoting import GoTextError

_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY = (datetime.min - _EPOCH).days
_DAYS_400 = 146_097
"""The number of days in 400 years of the calendar."""

_DIGITS = [f"{number:02}" for number in range(60)]

# Simulations format the same instant several times in a row, and rarely again later.
_known: dict[int, str] = {}
_MAX_KNOWN = 256


def format_time(time_ns: int) -> str:
    """Return the timestamp of a time in nanoseconds since 1970, truncated to seconds: `2026-01-31T12:00:00Z`."""
    second = time_ns // SECOND_NS
    text = _known.get(second)
    if text is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        text = _known[second] = _format_second(second)
    return text


def _format_second(second: int) -> str:
    minute, of_minute = second // 60 % 60, second % 60
    return f"{_format_hour(second // 3600)}:{_DIGITS[minute]}:{_DIGITS[of_minute]}Z"


@lru_cache(maxsize=4096)
def _format_hour(hour: int) -> str:
    day, hour = divmod(hour, 24)
    if day < _FIRST_DAY:
        # The year 0: Python has none, and its days are those of the year 400.
        return f"0000{(_EPOCH + timedelta(days=day + _DAYS_400)).date().isoformat()[4:]}T{_DIGITS[hour]}"
    return f"{(_EPOCH + timedelta(days=day)).date().isoformat()}T{_DIGITS[hour]}"


def format_micro_time(time_ns: int) -> str:
    """Return a `metav1.MicroTime`, truncated to microseconds: `2026-01-31T12:00:00.000000Z`."""
    return f"{format_time(time_ns)[:-1]}.{time_ns % SECOND_NS // 1000:06d}Z"


def format_instant(time_ns: int) -> str:
    """Return a timestamp truncated to milliseconds, as in Bayplan's own API: `2026-11-21T12:03:01.204Z`."""
    return f"{format_time(time_ns)[:-1]}.{time_ns % SECOND_NS // MILLISECOND_NS:03d}Z"


def format_time_in(time_ns: int, zone: tzinfo) -> str:
    """Return the timestamp in a time zone, with its offset (`Z` for zero), like Go's RFC3339 layout."""
    local = datetime.fromtimestamp(time_ns // SECOND_NS, zone)
    text = local.isoformat(timespec="seconds")
    return text.replace("+00:00", "Z") if text.endswith("+00:00") else text


# --- reading ----------------------------------------------------------------------------------------------------------


_API_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_LAYOUT_PARTS = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"),
                 ("15", r"\d\d"), (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"))  # fmt: skip
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)


@lru_cache(maxsize=65536)
def parse_time_ns(text: str) -> int:
    """Return the nanoseconds since 1970 of an RFC 3339 timestamp; digits beyond nanoseconds are ignored.

    Raises:
        InputError: the text is not an RFC 3339 timestamp, or its day or time does not exist.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise InputError("timestamp", wanted="an RFC 3339 timestamp", got=repr(text), hint="'2026-01-31T12:00:00Z'")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    # Go has a year 0, and Python has none. The calendar repeats after 400 years, so that the year 400 has the same days.
    shift = _DAYS_400 * 24 * 3600 if year == 0 else 0
    year = year or 400
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    try:
        date(year, month, day)
    except ValueError as problem:
        raise InputError("timestamp", wanted="an existing date", got=repr(text)) from problem
    if hour > 23 or minute > 59 or second > 59 or int(offset_hours or 0) > 24 or int(offset_minutes or 0) > 60:
        raise InputError("timestamp", wanted="hour, minute, second and UTC offset in range", got=repr(text))
    seconds = timegm((year, month, day, hour, minute, second)) - shift
    if sign:
        offset = int(offset_hours) * 3600 + int(offset_minutes) * 60
        seconds -= offset if sign == "+" else -offset
    return seconds * 1_000_000_000 + int((fraction or "")[:9].ljust(9, "0"))


MIN_INSTANT_NS = parse_time_ns("1678-01-01T00:00:00Z")
MAX_INSTANT_NS = parse_time_ns("2262-01-01T00:00:00Z")
"""The first and last instant that `parse_instant` returns: months from the ends of int64, so that small sums don't overflow."""


@lru_cache(maxsize=4096)
def parse_instant(text: str | None) -> int | None:
    """Return an RFC 3339 timestamp as nanoseconds since 1970 (int64), or None if it is None or invalid.

    An earlier or later time, which the API allows, is returned as `MIN_INSTANT_NS` or `MAX_INSTANT_NS`.
    """
    try:
        return min(max(parse_time_ns(text), MIN_INSTANT_NS), MAX_INSTANT_NS) if text else None
    except InputError:
        return None


@lru_cache(maxsize=4096)
def utc_time(text: str, *, micro: bool) -> str:
    """Return a timestamp in UTC as the API server stores it: truncated to seconds, or with six digits of a second.

    Args:
        text: the JSON string.
        micro: whether it is a `metav1.MicroTime`, which has exactly six digits, instead of a `metav1.Time`.

    Raises:
        GoTextError: the text is invalid; the message is that of `time.Parse`.
    """
    match = _API_TIME.fullmatch(text)
    fraction = match[7] if match else None
    if match is None or (micro and (fraction is None or len(fraction) != 7)):
        raise GoTextError(
            f'parsing time "{text}" as "{_MICRO_LAYOUT if micro else _LAYOUT}": {_time_problem(text, micro=micro)}'
        )
    if text[:4] == "0000" and match[8] == "Z":
        # Python has no year 0, which is a leap year like 2000.
        utc_time(f"2000{text[4:]}", micro=micro)
        return f"{text[:19]}{fraction}Z" if micro else f"{text[:19]}Z"
    try:
        instant = datetime.fromisoformat(text[:19] + match[8].replace("Z", "+00:00")).astimezone(UTC)
    except ValueError as problem:
        raise GoTextError(f'parsing time "{text}": {_range_problem(match)} out of range') from problem
    whole = instant.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{whole}{fraction}Z" if micro else f"{whole}Z"


def _time_problem(text: str, *, micro: bool) -> str:
    rest = text
    for part, pattern in _LAYOUT_PARTS:
        match = re.match(pattern, rest)
        if match is None:
            return f'cannot parse "{rest}" as "{part}"'
        rest = rest[match.end() :]
    if micro and not re.match(r"\.\d{6}", rest):
        return f'cannot parse "{rest}" as ".000000"'
    rest = rest[7:] if micro else re.sub(r"^\.\d+", "", rest)
    return f'cannot parse "{rest}" as "Z07:00"'


def _range_problem(match: re.Match[str]) -> str:
    month, hour, minute, second = int(match[2]), int(match[4]), int(match[5]), int(match[6])
    if not 1 <= month <= 12:
        return "month"
    if hour > 23:
        return "hour"
    if minute > 59:
        return "minute"
    return "second" if second > 59 else "day"
