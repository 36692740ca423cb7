"""Readers of single values: Go's kinds, and types with a JSON form of their own (quantities, times, int-or-string).

A reader takes a JSON value that is not null and returns what Go would write back, or raises `DecodeError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.base.errors import InputError
from bayplan.objects.quantity import Quantity

Reader = Callable[[object], object]

_QUANTITY_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_LAYOUT_PARTS = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"),
                 ("15", r"\d\d"), (":", ":"), ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"))  # fmt: skip
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BOUNDS = {"int32": 2**31, "int64": 2**63}


def read_string(go_type: str) -> Reader:
    """Return the reader of a string type."""

    def read(value: object) -> object:
        if type(value) is not str:
            raise DecodeError(value=go_kind(value), go_type=go_type.lstrip("*"))
        return value

    return read


def read_bytes(go_type: str) -> Reader:
    """Return the reader of bytes, which JSON has as base64 with padding."""

    def read(value: object) -> object:
        if type(value) is not str:
            raise DecodeError(value=go_kind(value), go_type=go_type.lstrip("*"))
        at = _bad_base64(value)
        if at is not None:
            raise DecodeError(f"illegal base64 data at input byte {at}")
        return value

    return read


def _bad_base64(text: str) -> int | None:
    """Return the byte at which Go's decoder gives up; None if the text is base64. Line ends are skipped."""
    positions = [index for index, byte in enumerate(text.encode()) if byte not in b"\r\n"]
    data = bytes(text.encode()[index] for index in positions)
    for start in range(0, len(data), 4):
        quantum = data[start : start + 4]
        for offset, byte in enumerate(quantum):
            if byte in _BASE64:
                continue
            at = positions[start + offset]
            if byte != ord("=") or offset < 2:
                return at
            if offset == 2 and (start + 3 >= len(data) or data[start + 3] != ord("=")):
                return len(text.encode()) if start + 3 >= len(data) else positions[start + 3]
            after = start + 4
            return positions[after] if after < len(data) else None
        if len(quantum) < 4:
            return positions[start]
    return None


def read_bool(go_type: str) -> Reader:
    """Return the reader of a boolean."""

    def read(value: object) -> object:
        if type(value) is not bool:
            raise DecodeError(value=go_kind(value), go_type=go_type.lstrip("*"))
        return value

    return read


def read_integer(kind: str, go_type: str) -> Reader:
    """Return the reader of an integer of a size (``int32`` or ``int64``)."""
    bound = _BOUNDS[kind]

    def read(value: object) -> object:
        if type(value) is not int:
            found = f"number {_go_number(value)}" if isinstance(value, float) else go_kind(value)
            raise DecodeError(value=found, go_type=go_type.lstrip("*"))
        if not -bound <= value < bound:
            raise DecodeError(value=f"number {value}", go_type=go_type.lstrip("*"))
        return value

    return read


def _go_number(value: float) -> str:
    return repr(value)


def read_float(go_type: str) -> Reader:
    """Return the reader of a floating point number."""

    def read(value: object) -> object:
        if type(value) is not int and type(value) is not float:
            raise DecodeError(value=go_kind(value), go_type=go_type.lstrip("*"))
        return value

    return read


def read_anything(value: object) -> object:
    """Take any JSON value as it is (raw extensions, schemas of custom resources)."""
    return value


def read_quantity(value: object) -> object:
    """Return the canonical text of a quantity, which may be written as a number."""
    if type(value) is str:
        return canonical_quantity(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecodeError(_QUANTITY_ERROR)
    return canonical_quantity(str(value))


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """Return the canonical form of a quantity: ``0.5`` is ``500m``."""
    try:
        return str(Quantity.parse(text))
    except InputError as problem:
        raise DecodeError(_QUANTITY_ERROR) from problem


def read_int_or_string(value: object) -> object:
    """Take an integer of 32 bits or a string."""
    if type(value) is str:
        return value
    if type(value) is int:
        if not -_BOUNDS["int32"] <= value < _BOUNDS["int32"]:
            raise DecodeError(value=f"number {value}", go_type="int32")
        return value
    raise DecodeError(value=go_kind(value), go_type="int32")


def read_time(value: object) -> object:
    """Return a time cut to seconds, in UTC, or None for an empty one."""
    if type(value) is not str:
        raise DecodeError(value=go_kind(value), go_type="string")
    return _utc(value, _LAYOUT, "")


def read_micro_time(value: object) -> object:
    """Return a time with exactly six digits of a second, in UTC."""
    if type(value) is not str:
        raise DecodeError(value=go_kind(value), go_type="string")
    return _utc(value, _MICRO_LAYOUT, "000000")


@lru_cache(maxsize=4096)
def _utc(text: str, layout: str, micro: str) -> str:
    match = _TIME.fullmatch(text)
    fraction = match[7] if match else None
    if match is None or (micro and (fraction is None or len(fraction) != 7)):
        raise DecodeError(f'parsing time "{text}" as "{layout}": {_time_problem(text, micro)}')
    try:
        instant = datetime.fromisoformat(text[:19] + match[8].replace("Z", "+00:00")).astimezone(UTC)
    except ValueError as problem:
        raise DecodeError(f'parsing time "{text}": {_range_problem(match)} out of range') from problem
    whole = instant.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{whole}{fraction}Z" if micro else f"{whole}Z"


def _time_problem(text: str, micro: str) -> str:
    rest = text
    for part, pattern in _LAYOUT_PARTS:
        match = re.match(pattern, rest)
        if match is None:
            return f'cannot parse "{rest}" as "{part}"'
        rest = rest[match.end() :]
    if micro and not re.match(r"\.\d{6}(?!\d)", rest):
        return f'cannot parse "{rest}" as ".{micro}"'
    rest = re.sub(r"^\.\d+", "", rest)
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
