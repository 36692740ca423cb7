"""Errors of decoding a JSON value as an object of a kind, with the messages of Go's decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from bayplan.base.plain_data import Document

_MAX_TYPE_ERRORS = 5
"""Maximum number of values of the wrong type to skip in search of an error that stops Go: each takes another pass."""


class DecodeError(Exception):
    """Go could not decode a value into a field. The path of the field grows as the exception propagates.

    Args:
        text: the complete message, for types with their own decoder (times, quantities).
        value: the found value as Go describes it: ``string``, ``number 1.5``, ``array``; only used without `text`.
        go_type: the expected type; only used without `text`.
        stops: whether Go stops at an error with a `text`.
        is_own: whether the type has its own decoder, at whose errors Go stops, and for which numbers with decimals are
            JSON also in Go maps.
    """

    def __init__(
        self, text: str = "", *, value: str = "", go_type: str = "", stops: bool = True, is_own: bool = False
    ) -> None:
        self.is_own = is_own
        self._text = text
        self._value = value
        self._go_type = go_type
        self._stops = stops
        self._struct = ""
        self._path: list[str] = []
        super().__init__(text)

    def inside(self, struct: str, field: str) -> None:
        """Prepend a field of the enclosing struct to the path.

        Called from the innermost struct outwards.
        """
        if not self._struct:
            self._struct = struct
        self._path.append(field)

    @property
    def is_final(self) -> bool:
        """Whether Go stops at the error. It remembers the first error about the type of a value, and continues."""
        return self._stops and (self.is_own or bool(self._text))

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the fields from the object to the value, without indices of lists."""
        return tuple(reversed(self._path))

    def __str__(self) -> str:
        if self._text:
            return self._text
        if not self._struct:
            return f"json: cannot unmarshal {self._value} into Go value of type {self._go_type}"
        path = ".".join(reversed(self._path))
        return (
            f"json: cannot unmarshal {self._value} into Go struct field {self._struct}.{path} of type {self._go_type}"
        )


def reported(read: Callable[[Document], object], value: Document, problem: DecodeError) -> DecodeError:
    """Return the error that Go reports if `problem` is the first one in a value: any later one that stops it, else the first.

    Args:
        read: decodes the value.
        value: the value.
        problem: the first error.
    """
    found, rest = problem, value
    for _ in range(_MAX_TYPE_ERRORS):
        if found.is_final or not found.path:
            break
        rest = cast("Document", _without(rest, found.path))
        try:
            read(rest)
        except DecodeError as later:
            found = later
        else:
            break
    return found if found.is_final else problem


def _without(value: object, path: tuple[str, ...]) -> object:
    if isinstance(value, list):
        return [_without(each, path) for each in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: each for name, each in value.items() if name != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}


def go_kind(value: object) -> str:
    """Return the name of a JSON value's type in messages of Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"
