"""Server-side apply: remove the fields that a manager applied before, but no longer applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from bayplan.apiserver.fields.compare import fields_of
from bayplan.apiserver.fields.field_set import Node, difference, intersection, union
from bayplan.apiserver.fields.field_type import FieldType
from bayplan.apiserver.fields.merging import remove, with_named_fields
from bayplan.base.plain_data import Document


class ConversionError(Exception):
    """An object cannot be converted: the other version does not exist any more, or does not declare all fields."""


Converter: TypeAlias = Callable[[str, str, Document], "tuple[FieldType, Document] | None"]
"""Returns a document converted between two API versions, and its type in the second; None if it can't be converted."""


def prune(
    convert: Converter, merged: Document, owned: Mapping[str, Node], *, last: Node, last_version: str, version: str
) -> Document:
    """Return an object without the fields that the manager no longer applies and that no manager owns.

    Args:
        convert: converts documents between API versions.
        merged: the object with the configuration applied.
        owned: the fields that managers own, including the configuration's, by API version.
        last: the fields that the manager applied before.
        last_version: the API version in which it did so.
        version: the API version of the object.

    Raises:
        ConversionError: one of the versions does not declare all fields of the object.
    """
    found = convert(version, last_version, merged)
    if found is None:
        return merged
    kind, whole = found
    left = _without(kind, whole, with_named_fields(kind, last))
    pruned = _with_owned(convert, (last_version, whole, left), owned)
    if pruned is None:
        return merged
    all_fields, last = with_named_fields(kind, fields_of(kind, whole)), with_named_fields(kind, last)
    gone = difference(all_fields, with_named_fields(kind, fields_of(kind, pruned)))
    result = convert(last_version, version, _without(kind, whole, intersection(gone, last)))
    return merged if result is None else result[1]


def _with_owned(
    convert: Converter, state: tuple[str, Document, Document], owned: Mapping[str, Node]
) -> Document | None:
    """Return the pruned object with the fields that managers own, in the version of the first state.

    Args:
        convert: converts documents between API versions.
        state: an API version, the object in it, and the object without the fields of the last configuration.
        owned: the fields that managers own, by API version.
    """
    first = version = state[0]
    whole, left = state[1:]
    for other in sorted(owned, key=lambda each: each != first):
        try:
            pair = convert(version, other, whole), convert(version, other, left)
        except ConversionError as problem:
            what = f"failed add back owned items: failed to convert merged object at version {other}"
            raise ConversionError(f"failed to prune fields: {what}: {problem}") from problem
        if pair[0] is None or pair[1] is None:
            continue
        kind, whole = pair[0]
        all_fields = with_named_fields(kind, fields_of(kind, whole))
        kept = union(with_named_fields(kind, fields_of(kind, pair[1][1])), with_named_fields(kind, owned[other]))
        left, version = _without(kind, whole, difference(all_fields, kept)), other
    found = convert(version, first, left)
    return None if found is None else found[1]


def _without(kind: FieldType, document: Document, fields: Node) -> Document:
    return cast("Document", remove(kind, document, fields) or {})
