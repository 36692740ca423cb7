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
