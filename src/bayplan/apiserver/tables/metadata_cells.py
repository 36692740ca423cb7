"""The cells that come from the metadata of an object, in the tables of many kinds."""

from __future__ import annotations

from bayplan.apiserver.tables.ages import age
from bayplan.base.plain_data import Document, part


def age_of(item: Document, now: float) -> str:
    """Return the age of an object at a time in seconds since 1970."""
    return age(part(item, "metadata").get("creationTimestamp"), now)


def name_of(item: Document) -> object:
    """Return the name of an object; "" for the object of a bookmark, which has none."""
    return part(item, "metadata").get("name") or ""
