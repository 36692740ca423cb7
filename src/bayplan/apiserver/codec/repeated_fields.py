"""JSON objects with repeated fields, decoded as Go's strict decoder does: the values of a field are merged.

Structs are merged field by field, lists item by item, and maps key by key; other values are replaced. Null clears
pointers, lists and maps, and leaves other values.

Source: sigs.k8s.io/json.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.codec.bodies import Repeated, without_repeated
from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.codec.shape import FieldShape, ListReader, MapReader, Reader, Shape
from bayplan.base.plain_data import Document

_MAX_PROBLEMS = 100
"""Maximum number of errors that Go's strict decoder collects."""


def merge_repeated(shape: Shape, value: Document) -> tuple[Document, list[str]]:
    """Return an object without repeated and unknown fields, and the errors of strict decoding about them, in order.

    Raises:
        DecodeError: a value does not fit its field.
    """
    merger = _Merger()
    merged = merger.struct(shape, value, {}, "")
    return merged, list(merger.problems)[:_MAX_PROBLEMS]


class _Merger:
    """Merges the values of repeated fields.

    Attributes:
        problems: the errors of strict decoding; a dictionary, because each is reported once.
    """

    def __init__(self) -> None:
        self.problems: dict[str, None] = {}

    def struct(self, shape: Shape, value: Document, before: Document, path: str) -> Document:
        """Return a struct with the fields of a JSON object; `before` has the fields of earlier values."""
        out = dict(before)
        for name, item, here in self._members(value, path, shape.fields):
            field = shape.fields[name]
            if item is not None:
                try:
                    out[name] = self._value(field.reader, field.inner, item, out.get(name), here)
                except DecodeError as problem:
                    problem.inside(field.struct, field.path)
                    raise
            elif field.is_cleared_by_null:
                out.pop(name, None)
        return out

    def _members(
        self, value: Document, path: str, fields: dict[str, FieldShape] | None
    ) -> Iterable[tuple[str, object, str]]:
        """Yield the name, value and path of each known member, also of repeated ones."""
        seen: set[str] = set()
        for name, item in value.pairs if isinstance(value, Repeated) else value.items():
            here = f"{path}.{name}" if path else name
            if fields is not None and name not in fields:
                self.problems[f'unknown field "{here}"'] = None
                continue
            if name in seen:
                self.problems[f'duplicate field "{here}"'] = None
            seen.add(name)
            yield name, item, here

    def _value(self, reader: Reader, inner: Shape | None, value: object, before: object, path: str) -> object:
        if isinstance(reader, MapReader) and isinstance(value, dict):
            out = dict(before) if isinstance(before, dict) else {}
            for name, item, here in self._members(value, path, None):
                out[name] = None if item is None else self._value(reader.item, inner, item, None, here)
            return out
        if isinstance(reader, ListReader) and isinstance(value, list):
            known = before if isinstance(before, list) else []
            padded = [*known[: len(value)], *[None] * (len(value) - len(known))]
            return [
                was if item is None else self._value(reader.item, inner, item, was, f"{path}[{index}]")
                for index, (item, was) in enumerate(zip(value, padded, strict=True))
            ]
        if reader is inner and inner is not None and isinstance(value, dict):
            return self.struct(inner, value, before if isinstance(before, dict) else {}, path)
        value = without_repeated(value)
        reader.read(value)  # Raises an error if the value does not fit, even if a later value replaces it.
        return value
