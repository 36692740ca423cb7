"""Timestamps and durations: values, conversions and functions.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md (timestamps and durations). Error messages are
cel-go's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import total_ordering
from typing import ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import parse_duration as parse_go_duration
from bayplan.base.go_text.quoting import GoTextError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.cel.problems import RunProblem

_MIN_NS, _MAX_NS = -62135596800 * SECOND_NS, 253402300799 * SECOND_NS + 999_999_999
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONE = re.compile(r"([+-])(\d\d):(\d\d)$", re.ASCII)
_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d{2})", re.ASCII)


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


def parse_timestamp(text: str) -> Timestamp:
    """Return the timestamp in an RFC 3339 text.

    Raises:
        RunProblem: the text is not a timestamp, or is out of range.
    """
    try:
        offset = _ZONE.search(text)
        seconds = 0 if offset is None else (int(offset[2]) * 60 + int(offset[3])) * (-60 if offset[1] == "-" else 60)
        return checked_timestamp(parse_time_ns(text), seconds)
    except InputError:
        raise RunProblem("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None


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
        raise RunProblem("duration overflow")
    return Duration(ns)


def timestamp_text(time: Timestamp) -> str:
    """Return a timestamp in RFC 3339 format, without trailing zeros in the fraction."""
    seconds, rest = divmod(time.ns, SECOND_NS)
    local = _EPOCH.replace(tzinfo=None) + timedelta(seconds=seconds + time.offset_s)
    text = local.isoformat(timespec="seconds")
    minutes = abs(time.offset_s) // 60
    zone = f"{'-' if time.offset_s < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}" if time.offset_s else "Z"
    return (f"{text}.{rest:09}".rstrip("0") if rest else text) + zone


def duration_text(span: Duration) -> str:
    """Return a duration as text in seconds, such as ``1.5s``."""
    whole, rest = divmod(abs(span.ns), SECOND_NS)
    sign = "-" if span.ns < 0 else ""
    return f"{sign}{whole}.{rest:09}".rstrip("0") + "s" if rest else f"{sign}{whole}s"


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
        return checked_timestamp(left.ns - right.ns, left.offset_s)
    return None


def _zone(name: str) -> tzinfo:
    match = _OFFSET.fullmatch(name)
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3])
        return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise RunProblem(f"unknown time zone {name}") from None


def _of_time(read: Callable[[datetime], int]) -> Callable[[object, str], int]:
    def part(value: object, zone: str = "") -> int:
        if not isinstance(value, Timestamp):
            raise TypeError
        return read((_EPOCH + timedelta(seconds=value.ns // SECOND_NS)).astimezone(_zone(zone)))

    return part


def _of_either(read: Callable[[datetime], int], unit_ns: int) -> Callable[..., int]:
    """Return a function that reads a field of a timestamp, or converts a duration to a unit, truncated towards zero."""
    of_time = _of_time(read)

    def part(value: object, zone: str = "") -> int:
        if isinstance(value, Duration) and not zone:
            return abs(value.ns) // unit_ns * (-1 if value.ns < 0 else 1)
        return of_time(value, zone)

    return part


def _milliseconds(value: object, zone: str = "") -> int:
    if isinstance(value, Duration) and not zone:
        return abs(value.ns) // 1_000_000 * (-1 if value.ns < 0 else 1)
    if isinstance(value, Timestamp):
        _zone(zone)
        return value.ns % SECOND_NS // 1_000_000
    raise TypeError


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "getFullYear": _of_time(lambda time: time.year),
    "getMonth": _of_time(lambda time: time.month - 1),
    "getDate": _of_time(lambda time: time.day),
    "getDayOfMonth": _of_time(lambda time: time.day - 1),
    "getDayOfWeek": _of_time(lambda time: time.isoweekday() % 7),
    "getDayOfYear": _of_time(lambda time: time.timetuple().tm_yday - 1),
    "getHours": _of_either(lambda time: time.hour, 3600 * SECOND_NS),
    "getMinutes": _of_either(lambda time: time.minute, 60 * SECOND_NS),
    "getSeconds": _of_either(lambda time: time.second, SECOND_NS),
    "getMilliseconds": _milliseconds,
}
