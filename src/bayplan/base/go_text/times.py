"""Times as the API writes and reads them: RFC 3339, `metav1.Time` in whole seconds, and `metav1.MicroTime`.

Kubernetes truncates every `metav1.Time` to seconds when an object passes through the API server, and so does the
virtual cluster. Timers (run times, delays, backoffs) count nanoseconds.
"""

from __future__ import annotations

import re
from datetime import date, datetime, tzinfo
from functools import lru_cache

from bayplan.base.durations import MILLISECOND_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.quoting import GoTextError, quote_bytes

DAY_S = 86_400
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097  # The calendar repeats.
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
    return f"{format_date(day)}T{_DIGITS[hour]}"


def format_date(day: int) -> str:
    """Return the date of a day since 1970. Years below 0 and above 9999 are written as in Go: `-0001-12-31`."""
    year, month, of_month = civil_date(day)
    return f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{of_month:02}"


def civil_date(day: int) -> tuple[int, int, int]:
    """Return year, month and day of the month of a day since 1970. The year may be outside of Python's dates."""
    cycle, of_cycle = divmod(day, _CYCLE_DAYS)
    found = date.fromordinal(_EPOCH_DAY + of_cycle)
    return found.year + cycle * _CYCLE_YEARS, found.month, found.day


def day_number(year: int, month: int, day: int) -> int:
    """Return the number of days from 1970 to a date. Raises ValueError if the date does not exist."""
    cycle, of_cycle = divmod(year - 1, _CYCLE_YEARS)  # Python has no year 0.
    return date(of_cycle + 1, month, day).toordinal() - _EPOCH_DAY + cycle * _CYCLE_DAYS


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


_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
# The parts of a layout, the text of each, and the range of its number; the range of days depends on the month.
_PARTS = tuple(
    (layout, re.compile(pattern, re.ASCII), name, low, high)
    for layout, pattern, name, low, high in (
        ("2006", r"\d{4}", "year", 0, 9999),
        ("-", "-", "", 0, 0),
        ("01", r"\d\d", "month", 1, 12),
        ("-", "-", "", 0, 0),
        ("02", r"\d\d", "day", 0, 99),
        ("T", "T", "", 0, 0),
        ("15", r"\d\d?", "hour", 0, 23),
        (":", ":", "", 0, 0),
        ("04", r"\d\d", "minute", 0, 59),
        (":", ":", "", 0, 0),
        ("05", r"\d\d", "second", 0, 59),
    )
)
_FRACTION = re.compile(r"[.,](\d+)", re.ASCII)
_MICROS = re.compile(r"[.,](\d{6}|[+-]\d{5})", re.ASCII)
_ZONE = re.compile(r"Z|([\x00-\x7f])(\d\d):(\d\d)", re.ASCII)

# Reading valid timestamps by one pattern takes half the time of reading their parts, which only errors need.
_CLOCK, _OFFSET = r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)", r"(?:Z|([+-])(\d\d):(\d\d))"
_TIME = re.compile(rf"{_CLOCK}(?:{_FRACTION.pattern})?{_OFFSET}", re.ASCII)
_MICRO_TIME = re.compile(_CLOCK + _MICROS.pattern + _OFFSET, re.ASCII)


def read_time(text: str, *, micro: bool = False) -> tuple[int, int]:
    """Return a timestamp in nanoseconds since 1970, and the offset of its time zone in seconds.

    Follows `time.Parse`, which accepts a comma before the fraction, hours with one digit, and offsets up to `24:60`.
    Digits beyond nanoseconds are ignored.

    Args:
        text: the timestamp.
        micro: whether it is a `metav1.MicroTime`, which has exactly six fractional digits.

    Raises:
        GoTextError: the text is invalid; the message is that of `time.Parse`.
    """
    match = (_MICRO_TIME if micro else _TIME).fullmatch(text)
    found = None if match is None else _instant(match)
    if found is None:
        raise _problem(text, micro=micro)
    return found


def _instant(match: re.Match[str]) -> tuple[int, int] | None:
    """Return a timestamp like `read_time`; None if a part is out of range."""
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = match.groups()
    seconds, offset_s, fraction_ns = int(hour) * 3600 + int(minute) * 60 + int(second), 0, 0
    if int(hour) > 23 or minute > "59" or second > "59":
        return None
    if fraction:
        # Six characters of a `metav1.MicroTime` may begin with a sign.
        fraction_ns = int(fraction[:9].ljust(9, "0"))
        if fraction_ns < 0:
            return None
    if sign:
        if hours > "24" or minutes > "60":
            return None
        offset_s = int(f"{sign}1") * (int(hours) * 3600 + int(minutes) * 60)
    try:
        days = day_number(int(year), int(month), int(day))
    except ValueError:
        return None
    return (days * DAY_S + seconds - offset_s) * SECOND_NS + fraction_ns, offset_s


def _problem(text: str, *, micro: bool) -> GoTextError:
    """Return the error about the first invalid part of a timestamp, in the order in which `time.Parse` reads them."""
    at = 0
    for layout, pattern, name, low, high in _PARTS:
        match = pattern.match(text, at)
        if match is None:
            return _unreadable(text, at, layout, micro=micro)
        at = match.end()
        if name and not low <= int(match[0]) <= high:
            return _out_of_range(text, name)
    fraction = (_MICROS if micro else _FRACTION).match(text, at)
    if fraction is not None:
        at = fraction.end()
        if int(fraction[1][:9]) < 0:
            return _out_of_range(text, "fractional second")
    elif micro:
        return _unreadable(text, at, ".000000", micro=micro)
    zone = _ZONE.match(text, at)
    if zone is None:
        return _unreadable(text, at, "Z07:00", micro=micro)
    if zone[1] is not None:
        if zone[3] > "60":
            return _out_of_range(text, "time zone offset minute")
        if zone[2] > "24":
            return _out_of_range(text, "time zone offset hour")
        if zone[1] not in "+-":
            return _unreadable(text, at, "Z07:00", micro=micro)
    if zone.end() < len(text):
        return GoTextError(f"parsing time {quote_bytes(text)}: extra text: {quote_bytes(text[zone.end() :])}")
    return _out_of_range(text, "day")


def _unreadable(text: str, at: int, layout: str, *, micro: bool) -> GoTextError:
    whole = quote_bytes(_MICRO_LAYOUT if micro else _LAYOUT)
    rest = quote_bytes(text[at:])
    return GoTextError(f"parsing time {quote_bytes(text)} as {whole}: cannot parse {rest} as {quote_bytes(layout)}")


def _out_of_range(text: str, name: str) -> GoTextError:
    return GoTextError(f"parsing time {quote_bytes(text)}: {name} out of range")


@lru_cache(maxsize=65536)
def parse_time_ns(text: str) -> int:
    """Return the nanoseconds since 1970 of an RFC 3339 timestamp; digits beyond nanoseconds are ignored.

    Raises:
        InputError: the text is not an RFC 3339 timestamp, or its day or time does not exist.
    """
    try:
        return read_time(text)[0]
    except GoTextError:
        raise InputError(
            "timestamp", wanted="an RFC 3339 timestamp that exists", got=repr(text), hint="'2026-01-31T12:00:00Z'"
        ) from None


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
        micro: whether it is a `metav1.MicroTime` instead of a `metav1.Time`.

    Raises:
        GoTextError: the text is invalid; the message is that of `time.Parse`.
    """
    time_ns, _ = read_time(text, micro=micro)
    return format_micro_time(time_ns) if micro else format_time(time_ns)
