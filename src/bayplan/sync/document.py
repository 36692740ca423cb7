"""Access to plain JSON documents of Kubernetes objects without trusting their structure."""

from __future__ import annotations

from typing import cast

from bayplan.base.plain_data import Document


def part(document: Document, name: str) -> Document:
    """Return an object inside a document, empty if there is none. Never modify it."""
    found = document.get(name)
    return cast("Document", found) if isinstance(found, dict) else {}


def items(document: Document, name: str) -> list[Document]:
    """Return the objects of a list inside a document, empty if there is none."""
    found = document.get(name)
    return [cast("Document", each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def text(document: Document, name: str) -> str:
    """Return a string inside a document, "" if there is none."""
    found = document.get(name)
    return found if isinstance(found, str) else ""
