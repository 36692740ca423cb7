"""Timestamps and durations: values, conversions and functions.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md (timestamps and durations). Error messages are
cel-go's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import total_ordering
from typing import ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_arithmetic import wrap
from bayplan.base.go_text.durations import parse_duration as parse_go_duration
from bayplan.base.go_text.json import positional_text
from bayplan.base.go_text.quoting import GoTextError, quote
from bayplan.base.go_text.times import DAY_S, civil_date, day_number, format_date, read_time
from bayplan.cel.problems import RunProblem

_MIN_NS, _MAX_NS = -62135596800 * SECOND_NS, 253402300799 * SECOND_NS + 999_999_999
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE_S = 146_097 * DAY_S
"""400 years, after which the calendar and the rules of time zones repeat."""
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


@total_ordering
class Timestamp:
    """A point in time.

    Attributes:
        ns: nanoseconds since 1970.
        offset_s: the offset of the time zone in seconds, which only affects the text.
    """

    __slots__ = ("ns", "offset_s")
    cel_type_name: ClassVar[str] = "google.protobuf.Timestamp"

    def __init__(self, ns: int, offset_s: int = 0) -> None:
        self.ns = ns
        self.offset_s = offset_s

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.ns == other.ns

    def __lt__(self, other: Timestamp) -> bool:
        return self.ns < other.ns

    def __hash__(self) -> int:
        return hash(self.ns)


class Duration(msgspec.Struct, frozen=True, order=True):
    """A span of time in nanoseconds."""

    cel_type_name: ClassVar[str] = "google.protobuf.Duration"

    ns: int


ZERO_TIME = Timestamp(_MIN_NS)
"""Go's zero time, the start of the year 1."""


def parse_timestamp(text: str) -> Timestamp:
    """Return the timestamp in an RFC 3339 text.

    Raises:
        RunProblem: the text is not a timestamp, or is out of range.
    """
    try:
        ns, offset_s = read_time(text)
    except GoTextError:
        raise RunProblem("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None
    return checked_timestamp(ns, offset_s)


def parse_duration(text: str) -> Duration:
    """Return the duration in a text such as ``1h30m``.

    Raises:
        RunProblem: the text is not a duration.
    """
    try:
        return Duration(parse_go_duration(text))
    except GoTextError:
        raise RunProblem("type conversion error from 'string' to 'google.protobuf.Duration'") from None


def checked_timestamp(ns: int, offset_s: int = 0) -> Timestamp:
    """Return a timestamp, which must be in the years 1 to 9999.

    Raises:
        RunProblem: the time is out of range.
    """
    if not _MIN_NS <= ns <= _MAX_NS:
        raise RunProblem("timestamp overflow")
    return Timestamp(ns, offset_s)


def checked_duration(ns: int) -> Duration:
    """Return a duration, whose nanoseconds must fit an int64.

    Raises:
        RunProblem: the duration is out of range.
    """
    if not _INT_MIN <= ns <= _INT_MAX:
        raise RunProblem("integer overflow")
    return Duration(ns)


def timestamp_text(time: Timestamp) -> str:
    """Return a timestamp in RFC 3339 format, without trailing zeros in the fraction."""
    seconds, rest = divmod(time.ns, SECOND_NS)
    day, of_day = divmod(seconds + time.offset_s, DAY_S)
    text = f"{format_date(day)}T{of_day // 3600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}"
    minutes = abs(time.offset_s) // 60
    zone = f"{'-' if time.offset_s < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}" if time.offset_s else "Z"
    return (f"{text}.{rest:09}".rstrip("0") if rest else text) + zone


def duration_text(span: Duration) -> str:
    """Return a duration as text in seconds, such as ``1.5s``. Like cel-go, it is converted to a double first."""
    whole, rest = divmod(abs(span.ns), SECOND_NS)
    seconds = math.copysign(whole + rest / 1e9, span.ns)
    return f"{positional_text(seconds)}s" if seconds else "0s"


def add(left: object, right: object) -> object:
    """Return the sum of two durations, or of a timestamp and a duration; None for other types."""
    if isinstance(left, Duration) and isinstance(right, Duration):
        return checked_duration(left.ns + right.ns)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return checked_timestamp(left.ns + right.ns, left.offset_s)
    if isinstance(left, Duration) and isinstance(right, Timestamp):
        return checked_timestamp(left.ns + right.ns, right.offset_s)
    return None


def subtract(left: object, right: object) -> object:
    """Return the difference of two timestamps or durations, or of a timestamp and a duration; None for other types."""
    if isinstance(left, Timestamp | Duration) and type(left) is type(right):
        return checked_duration(left.ns - right.ns)
    if isinstance(left, Timestamp) and isinstance(right, Duration):
        return checked_timestamp(left.ns + checked_duration(-right.ns).ns, left.offset_s)
    return None


def _local_s(time: Timestamp, zone: str) -> int:
    """Return the seconds from 1970 in local time to the local time of a zone: a name, or an offset such as ``-5:30``.

    Raises:
        RunProblem: the zone does not exist.
    """
    seconds = time.ns // SECOND_NS
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return seconds + _zone_offset_s(zone, seconds)
    hour, minute = atoi(hours), atoi(minutes)
    offset = wrap(hour * 60 + (-minute if zone.startswith("-") else minute))
    offset_ns = wrap(offset * 60 * SECOND_NS)
    return seconds + math.trunc(offset_ns / 1e9)


def atoi(text: str) -> int:
    """Return the integer in a text as Go's function of this name does.

    Raises:
        RunProblem: the text is not an integer, or exceeds an int64.
    """
    if not _INTEGER.fullmatch(text):
        raise RunProblem(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    # Python refuses to convert texts of thousands of digits, even of zeros.
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits[:20]) * (-1 if text.startswith("-") else 1)
    if len(digits) > 19 or not _INT_MIN <= number <= _INT_MAX:
        raise RunProblem(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return number


def _zone_offset_s(name: str, seconds: int) -> int:
    """Return the offset of a named time zone at a time. ``Local``, the zone of the API server, is UTC.

    Raises:
        RunProblem: the zone does not exist.
    """
    if name in ("", "UTC", "Local"):
        return 0
    if ".." in name or name[0] in "/\\":
        raise RunProblem("time: invalid location name")
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise RunProblem(f"unknown time zone {name}") from None
    # The local time of the first and last days may be outside of Python's dates.
    if seconds < _MIN_NS // SECOND_NS + DAY_S:
        seconds += _CYCLE_S
    elif seconds > _MAX_NS // SECOND_NS - DAY_S:
        seconds -= _CYCLE_S
    offset = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone).utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)


def _of_time(read: Callable[[int], int]) -> Callable[[object, str], int]:
    """Return a function that reads a field of a timestamp in a zone; `read` gets the seconds since 1970 there."""

    def part(value: object, zone: str = "") -> int:
        if not isinstance(value, Timestamp) or not isinstance(zone, str):
            raise TypeError
        return read(_local_s(value, zone))

    return part


def _of_either(read: Callable[[int], int], unit_ns: int) -> Callable[..., int]:
    """Return a function that reads a field of a timestamp, or converts a duration to a unit, truncated towards zero."""
    of_time = _of_time(read)

    def part(value: object, zone: str = "") -> int:
        if isinstance(value, Duration) and not zone:
            whole, rest = divmod(abs(value.ns), unit_ns)
            amount = int(whole + rest / unit_ns)  # Like Go, through a double, which may round up to a whole number.
            return -amount if value.ns < 0 else amount
        return of_time(value, zone)

    return part


def _milliseconds(value: object, zone: str = "") -> int:
    if isinstance(value, Duration) and not zone:
        return abs(value.ns) // 1_000_000 * (-1 if value.ns < 0 else 1)
    if isinstance(value, Timestamp) and isinstance(zone, str):
        _local_s(value, zone)
        return value.ns % SECOND_NS // 1_000_000
    raise TypeError


def _of_date(place: int, plus: int = 0) -> Callable[[object, str], int]:
    """Return a function that reads the year, month or day of a timestamp, plus a number."""
    return _of_time(lambda seconds: civil_date(seconds // DAY_S)[place] + plus)


def _day_of_year(seconds: int) -> int:
    day = seconds // DAY_S
    return day - day_number(civil_date(day)[0], 1, 1)


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "getFullYear": _of_date(0),
    "getMonth": _of_date(1, -1),
    "getDate": _of_date(2),
    "getDayOfMonth": _of_date(2, -1),
    "getDayOfWeek": _of_time(lambda seconds: (seconds // DAY_S + 4) % 7),  # 1970 began on a Thursday.
    "getDayOfYear": _of_time(_day_of_year),
    "getHours": _of_either(lambda seconds: seconds // 3600 % 24, 3600 * SECOND_NS),
    "getMinutes": _of_either(lambda seconds: seconds // 60 % 60, 60 * SECOND_NS),
    "getSeconds": _of_either(lambda seconds: seconds % 60, SECOND_NS),
    "getMilliseconds": _milliseconds,
}
