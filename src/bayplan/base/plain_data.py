"""Data as JSON and YAML have it, before it is read into types or after it was written from them."""

from __future__ import annotations

from typing import cast

Plain = dict[str, object]
"""An object of JSON."""

Document = dict[str, object]
"""A Kubernetes object, or a part of one, as its document has it."""


def part(document: Document, *names: str) -> Document:
    """Return an object inside a document; an empty one if there is none. Never modify it."""
    for name in names:
        found = document.get(name)
        if not isinstance(found, dict):
            return {}
        document = found
    return document


def parts(document: Document, name: str) -> list[Document]:
    """Return a list of objects inside a document whose types were checked; an empty one if there is none."""
    found = document.get(name)
    return cast("list[Document]", found) if isinstance(found, list) else []


def texts(document: Document, name: str) -> list[str]:
    """Return a list of texts inside a document whose types were checked; an empty one if there is none."""
    found = document.get(name)
    return cast("list[str]", found) if isinstance(found, list) else []


def items(document: Document, name: str) -> list[Document]:
    """Return the objects of a list inside any document, without what is no object; an empty list if there is none."""
    found = document.get(name)
    return [cast("Document", each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text(document: Document, name: str) -> str:
    """Return a text inside a document, "" if there is none."""
    found = document.get(name)
    return found if isinstance(found, str) else ""
