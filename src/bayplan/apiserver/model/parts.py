"""Parts of documents, with an empty one in place of what is missing or of another type."""

from __future__ import annotations

from typing import cast

from bayplan.base.plain_data import Document


def part(document: Document, *names: str) -> Document:
    """Return an object inside a document; an empty one if there is none."""
    for name in names:
        found = document.get(name)
        if not isinstance(found, dict):
            return {}
        document = found
    return document


def parts(document: Document, name: str) -> list[Document]:
    """Return a list of objects inside a document; an empty one if there is none."""
    found = document.get(name)
    return cast("list[Document]", found) if isinstance(found, list) else []


def texts(document: Document, name: str) -> list[str]:
    """Return a list of texts inside a document; an empty one if there is none."""
    found = document.get(name)
    return cast("list[str]", found) if isinstance(found, list) else []
