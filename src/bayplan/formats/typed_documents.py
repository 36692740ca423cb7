"""Decode documents of Bayplan's own formats to structs. Unknown or missing fields and wrong types are errors with a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from msgspec import inspect

from bayplan.base.errors import InputError
from bayplan.base.long_durations import read_long_duration
from bayplan.base.near_names import near_name
from bayplan.formats.documents import Document, read_documents
from bayplan.formats.files import InputFile, read_bytes
from bayplan.objects.kinds import convert
from bayplan.objects.meta import ApiStruct

T = TypeVar("T", bound=msgspec.Struct)


class Part(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a file in a format of Bayplan's own; unknown fields are errors."""


def read_single(path: Path, *, kind: str) -> Document:
    """Return the only document of a file.

    Raises:
        InputError: the file can't be read, or does not contain exactly one document.
    """
    documents = list(read_documents(read_bytes(InputFile(str(path), path)), str(path)))
    if len(documents) != 1:
        raise InputError(str(path), wanted=f"one {kind}", got=f"{len(documents)} documents")
    return documents[0]


def read_typed(document: Document, struct: type[T], *, kind: str, api_version: str) -> T:
    """Decode a document as a struct.

    Args:
        document: the document, with ``apiVersion`` and ``kind``.
        struct: the struct type.
        kind, api_version: the expected kind and apiVersion.

    Raises:
        InputError: the kind is different, or a field is unknown, missing or of the wrong type; with file and line.
    """
    value = document.value
    if not isinstance(value, dict):
        raise InputError("document", where=document.where(), wanted=f"a {kind}", got=type(value).__name__)
    for name, wanted in (("apiVersion", api_version), ("kind", kind)):
        if value.get(name) != wanted:
            got = repr(value[name]) if name in value else "none"
            raise InputError(f"{kind} $.{name}", where=document.where(f"$.{name}"), wanted=f"'{wanted}'", got=got)
    check_fields(document, struct, kind=kind)
    try:
        return convert(value, struct, what=kind)
    except InputError as problem:
        raise placed(problem, document) from None


def check_fields(document: Document, struct: type[msgspec.Struct], *, kind: str) -> None:
    """Raise an error for the first field of a document that the struct does not have, or that the document lacks.

    Raises:
        InputError: a field is unknown or missing; with file and line.
    """
    _Fields(document, kind).check(document.value, inspect.type_info(struct), "$")


def duration_at(document: Document, text: str, path: str, *, kind: str) -> int:
    """Parse a duration at a path of a document; return nanoseconds.

    Raises:
        InputError: the text is not a duration; with file and line.
    """
    try:
        return read_long_duration(text, what=f"{kind} {path}")
    except InputError as problem:
        raise placed(problem, document) from None


def placed(problem: InputError, document: Document) -> InputError:
    """Add file and line to an error about a field (``Kind $.path``)."""
    _, _, path = problem.what.partition(" $")
    return InputError(
        problem.what, where=document.where(f"${path}"), wanted=problem.wanted, got=problem.got, hint=problem.hint
    )


class _Fields:
    """Compares the fields of a document with those of a struct."""

    def __init__(self, document: Document, kind: str) -> None:
        self._document = document
        self._kind = kind

    def check(self, value: object, type_: inspect.Type, path: str) -> None:
        """Reject the first field that is unknown or missing, or whose value is not among the allowed ones."""
        if isinstance(type_, inspect.Metadata):
            self.check(value, type_.type, path)
        elif isinstance(type_, inspect.UnionType):
            for each in type_.types:
                self.check(value, each, path)
        elif isinstance(type_, inspect.VarTupleType) and isinstance(value, list):
            for index, item in enumerate(value):
                self.check(item, type_.item_type, f"{path}[{index}]")
        elif isinstance(type_, inspect.LiteralType) and isinstance(value, str) and value not in type_.values:
            *most, last = (str(each) for each in type_.values)
            wanted = f"{', '.join(most)} or {last}" if most else last
            raise InputError(f"{self._kind} {path}", where=self._document.where(path), wanted=wanted, got=repr(value))
        elif isinstance(type_, inspect.StructType) and isinstance(value, dict):
            self._struct(cast("Mapping[str, object]", value), type_, path)

    def _struct(self, value: Mapping[str, object], type_: inspect.StructType, path: str) -> None:
        fields = {field.encode_name: field for field in type_.fields}
        for name, item in value.items():
            here = f"{path}.{name}"
            if name not in fields:
                close = near_name(name, fields)
                hint = f"'{close}'" if close else f"one of {', '.join(fields)}"
                where = self._document.where(here)
                raise InputError(f"{self._kind} {here}", where=where, got="an unknown field", hint=hint)
            self.check(item, fields[name].type, here)
        for name, field in fields.items():
            if field.required and name not in value:
                where = self._document.where(path)
                raise InputError(f"{self._kind} {path}.{name}", where=where, wanted="a value", got="none")
