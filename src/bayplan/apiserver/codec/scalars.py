"""Readers of single values: Go's basic types, and types with their own JSON form (quantities, times, int-or-string).

A reader takes a JSON value other than null and returns the value that Go would encode after decoding it, or raises
`DecodeError`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import cast

from bayplan.apiserver.codec.decode_error import DecodeError, go_kind
from bayplan.base.errors import InputError
from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.quoting import GoTextError
from bayplan.base.go_text.times import utc_time
from bayplan.objects.quantity import Quantity, quantity_problem

Reader = Callable[[object], object]

_RANGES = {"uint8": range(2**8), "int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}


def read_string(go_type: str) -> Reader:
    """Return the reader of a string type. `go_type` is the name of the type in errors, also in the other functions."""

    def read(value: object) -> object:
        if type(value) is not str:
            raise DecodeError(value=go_kind(value), go_type=go_type.lstrip("*"))
        return value

    return read


def read_bytes(go_type: str) -> Reader:
    """Return the reader of bytes, which are base64 with padding in JSON, or a list of numbers."""
    read_number = read_integer("uint8", "uint8")

    def read(value: object) -> object:
        if type(value) is list:
            return b64encode(bytes(0 if each is None else cast("int", read_number(each)) for each in value)).decode()
        if type(value) is not str:
            raise DecodeError(value=go_kind(value), go_type=go_type.lstrip("*"))
        try:
            decode_base64(value)
        except GoTextError as problem:
            raise DecodeError(str(problem), stops=False) from None
        return value

    return read


def read_bool(go_type: str) -> Reader:
    """Return the reader of a boolean."""

    def read(value: object) -> object:
        if type(value) is not bool:
            raise DecodeError(value=go_kind(value), go_type=go_type.lstrip("*"))
        return value

    return read


def read_integer(kind: str, go_type: str) -> Reader:
    """Return the reader of an integer; `kind` is ``uint8``, ``int32`` or ``int64``."""
    allowed = _RANGES[kind]

    def read(value: object) -> object:
        if type(value) is not int:
            found = f"number {_go_number(value)}" if isinstance(value, float) else go_kind(value)
            raise DecodeError(value=found, go_type=go_type.lstrip("*"))
        if value not in allowed:
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
    """Return any JSON value unchanged, for raw extensions and schemas of custom resources."""
    return value


def read_quantity(value: object) -> object:
    """Return the canonical text of a quantity, which JSON can contain as a string or number."""
    if type(value) is str:
        return canonical_quantity(value.strip(" "))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DecodeError(quantity_problem(""))
    return canonical_quantity(str(value))


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """Return a quantity in canonical form: ``0.5`` becomes ``500m``.

    Raises:
        DecodeError: the text is not a quantity.
    """
    return str(_parsed(text))


def read_resource_amount(value: object) -> object:
    """Return the canonical text of an amount of a resource list, which is rounded up to thousandths."""
    text = read_quantity(value)
    return _rounded(text) if type(text) is str and text.endswith(_BELOW_MILLI) else text


_BELOW_MILLI = ("n", "u", "e-6", "e-9")
_MILLI = -3


@lru_cache(maxsize=256)
def _rounded(text: str) -> str:
    return str(_parsed(text).rounded_up(_MILLI))


def _parsed(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except InputError as problem:
        raise DecodeError(quantity_problem(text)) from problem


def read_int_or_string(value: object) -> object:
    """Return a 32-bit integer or string unchanged."""
    if type(value) is str:
        return value
    if type(value) is int:
        if value not in _RANGES["int32"]:
            raise DecodeError(value=f"number {value}", go_type="int32", is_own=True)
        return value
    found = f"number {_go_number(value)}" if isinstance(value, float) else go_kind(value)
    raise DecodeError(value=found, go_type="int32", is_own=True)


def read_time(value: object) -> object:
    """Return a time in UTC, truncated to seconds; None for an empty string."""
    if type(value) is not str:
        raise DecodeError(value=go_kind(value), go_type="string", is_own=True)
    return _time(value, micro=False)


def read_micro_time(value: object) -> object:
    """Return a time in UTC with exactly six fractional digits."""
    if type(value) is not str:
        raise DecodeError(value=go_kind(value), go_type="string", is_own=True)
    return _time(value, micro=True)


def _time(text: str, *, micro: bool) -> str:
    try:
        return utc_time(text, micro=micro)
    except GoTextError as problem:
        raise DecodeError(str(problem)) from None
