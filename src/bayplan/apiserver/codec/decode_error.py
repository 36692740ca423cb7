"""Errors of decoding a JSON value as an object of a kind, with the messages of Go's decoder."""

from __future__ import annotations


class DecodeError(Exception):
    """Go could not decode a value into a field. The path of the field grows as the exception propagates.

    Args:
        text: the complete message, for types with their own decoder (times, quantities).
        value: the found value as Go describes it: ``string``, ``number 1.5``, ``array``; only used without `text`.
        go_type: the expected type; only used without `text`.
    """

    def __init__(self, text: str = "", *, value: str = "", go_type: str = "") -> None:
        self._text = text
        self._value = value
        self._go_type = go_type
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
    """Return the name of a JSON value's type in messages of Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"
