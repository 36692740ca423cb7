"""Equality of objects, by which a write that changes nothing is not stored."""

from __future__ import annotations

from bayplan.base.plain_data import Document, part


def is_same(new: Document, old: Document) -> bool:
    """Return whether two objects are equal except for the times of field managers."""
    if new == old:
        return True
    timeless_new, timeless_old = _timeless(new), _timeless(old)
    return timeless_new == timeless_old


def _timeless(document: Document) -> Document:
    metadata = dict(part(document, "metadata"))
    entries = metadata.get("managedFields")
    if isinstance(entries, list):
        metadata["managedFields"] = [{**entry, "time": ""} for entry in entries]
    bare = {name: value for name, value in document.items() if name not in ("kind", "apiVersion")}
    return {**bare, "metadata": metadata}
