"""Data as decoded from JSON or YAML, or ready to be encoded."""

from __future__ import annotations

from typing import cast

Plain = dict[str, object]
"""A JSON object."""

Document = dict[str, object]
"""A Kubernetes object as a JSON object, or a part of one."""


def with_sorted_keys(value: object) -> object:
    """Return a value whose objects, at every depth, have sorted keys, as Go writes the JSON of a map."""
    if isinstance(value, dict):
        return {name: with_sorted_keys(item) for name, item in sorted(cast("Document", value).items())}
    return [with_sorted_keys(item) for item in value] if isinstance(value, list) else value


def same_json(one: object, other: object) -> bool:
    """Return whether two JSON values are equal. For Python, True equals 1, too."""
    return one == other and _has_same_booleans(one, other)


def _has_same_booleans(one: object, other: object) -> bool:
    """Return whether equal values have their booleans at the same places."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_has_same_booleans(item, other[name]) for name, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return all(map(_has_same_booleans, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def part(document: Document, *names: str) -> Document:
    """Return the object at a path inside a document, or an empty object if there is none.

    Callers must not modify it.
    """
    for name in names:
        found = document.get(name)
        if not isinstance(found, dict):
            return {}
        document = found
    return document


def parts(document: Document, name: str) -> list[Document]:
    """Return a list of objects inside a validated document; empty if there is none."""
    found = document.get(name)
    return cast("list[Document]", found) if isinstance(found, list) else []


def texts(document: Document, name: str) -> list[str]:
    """Return a list of strings inside a validated document; empty if there is none."""
    found = document.get(name)
    return cast("list[str]", found) if isinstance(found, list) else []


def items(document: Document, name: str) -> list[Document]:
    """Return the objects in a list inside any document, without items of other types; empty if there is no list."""
    found = document.get(name)
    return [cast("Document", each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text(document: Document, name: str) -> str:
    """Return a string inside a document; `""` if there is none."""
    found = document.get(name)
    return found if isinstance(found, str) else ""
