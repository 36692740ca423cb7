"""Errors of decoding a body as an object of a kind, in the words of Go's decoder."""

from __future__ import annotations


class DecodeError(Exception):
    """A value that Go could not decode into a field. The path grows as the exception propagates.

    Args:
        text: the whole message, if the type has its own decoder (times, quantities).
        value: the value found, in Go's words: ``string``, ``number 1.5``, ``array``; used when there is no `text`.
        go_type: the expected type.
    """

    def __init__(self, text: str = "", *, value: str = "", go_type: str = "") -> None:
        self._text = text
        self._value = value
        self._go_type = go_type
        self._struct = ""
        self._path: list[str] = []
        super().__init__(text)

    def inside(self, struct: str, field: str) -> None:
        """Prepend the field of a struct that contains the value; called from the inside out."""
        if not self._struct:
            self._struct = struct
        self._path.append(field)

    def __str__(self) -> str:
        if self._text:
            return self._text
        if not self._struct:
            return f"json: cannot unmarshal {self._value} into Go value of type {self._go_type}"
        path = ".".join(reversed(self._path))
        return (
            f"json: cannot unmarshal {self._value} into Go struct field {self._struct}.{path} of type {self._go_type}"
        )


def go_kind(value: object) -> str:
    """Return the name of a JSON value's type in Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"
