"""Data as decoded from JSON and YAML, before conversion to types or after conversion from them."""

from __future__ import annotations

from typing import cast

Plain = dict[str, object]
"""A JSON object."""

Document = dict[str, object]
"""The document of a Kubernetes object, or of a part of one."""


def part(document: Document, *names: str) -> Document:
    """Return an object inside a document, or an empty object if it does not exist. Never modify it."""
    for name in names:
        found = document.get(name)
        if not isinstance(found, dict):
            return {}
        document = found
    return document


def parts(document: Document, name: str) -> list[Document]:
    """Return a list of objects inside a validated document, or an empty list."""
    found = document.get(name)
    return cast("list[Document]", found) if isinstance(found, list) else []


def texts(document: Document, name: str) -> list[str]:
    """Return a list of strings inside a validated document, or an empty list."""
    found = document.get(name)
    return cast("list[str]", found) if isinstance(found, list) else []


def items(document: Document, name: str) -> list[Document]:
    """Return the objects of a list inside any document, without other values, or an empty list."""
    found = document.get(name)
    return [cast("Document", each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text(document: Document, name: str) -> str:
    """Return a string inside a document, or ""."""
    found = document.get(name)
    return found if isinstance(found, str) else ""
