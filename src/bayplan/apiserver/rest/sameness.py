"""Checks whether a change to an object has no effect, or removes the object."""

from __future__ import annotations

from bayplan.base.plain_data import Document, part, same_json, texts


def is_same(new: Document, old: Document) -> bool:
    """Return whether two objects are equal except for the times of field managers."""
    return same_json(new, old) or same_json(_timeless(new), _timeless(old))


def _timeless(document: Document) -> Document:
    metadata = dict(part(document, "metadata"))
    entries = metadata.get("managedFields")
    if isinstance(entries, list):
        metadata["managedFields"] = [{**entry, "time": ""} for entry in entries]
    bare = {name: value for name, value in document.items() if name not in ("kind", "apiVersion")}
    return {**bare, "metadata": metadata}


def deletes_now(table: str, new: Document, old: Document) -> bool:
    """Return whether a write leaves a terminating object without finalizers and grace period, even if it changes nothing."""
    metadata, before = part(new, "metadata"), part(old, "metadata")
    if texts(metadata, "finalizers") or not before.get("deletionTimestamp"):
        return False
    if table == "namespaces" and texts(part(new, "spec"), "finalizers"):
        return False
    return not before.get("deletionGracePeriodSeconds")
