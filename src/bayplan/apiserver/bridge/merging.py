"""Merging of a controller's changes to a typed object into its document; fields without a typed form do not change.

Both versions of the typed object are plain data. The old one was decoded from the document, so its lists match the document's item
by item, and list keys are not needed to find an item's document.
"""

from __future__ import annotations

from collections import deque

from bayplan.base.plain_data import Document

_NAMES = ("type", "name", "uid", "key", "ip", "containerPort")
_ABSENT = object()


def merged(document: object, before: object, after: object) -> object:
    """Return a part of a document with the changes between two versions of its typed form.

    Args:
        document: the stored part; not changed.
        before: the typed part that was decoded from it, as plain data.
        after: the new typed part, as plain data; defaults left out.
    """
    if before == after:
        return document
    if isinstance(document, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _merged_fields(document, before, after)
    if not isinstance(document, list) or not isinstance(before, list) or not isinstance(after, list):
        return after
    return _merged_items(document, before, after) if len(document) == len(before) else after


def _merged_fields(document: Document, before: Document, after: Document) -> Document:
    result = dict(document)
    for name in before:
        if name not in after:
            # The value is now the default, which an absent field means.
            result.pop(name, None)
    for name, value in after.items():
        was = before.get(name, _ABSENT)
        if was is _ABSENT or name not in document:
            result[name] = value
        elif was != value:
            result[name] = merged(document[name], was, value)
    return result


def _merged_items(document: list[object], before: list[object], after: list[object]) -> list[object]:
    """Merge lists in linear time. Match each item with the first unmatched equal item, or else with one of its identity."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    result = document[:start]
    equals: dict[str, deque[int]] = {}
    versions: dict[str, deque[int]] = {}
    for at in range(start, len(before)):
        equals.setdefault(repr(before[at]), deque()).append(at)
        versions.setdefault(_identity(before[at]), deque()).append(at)
    taken: set[int] = set()
    for item in after[start:]:
        found = _first_left(equals.get(repr(item)), taken)
        if found is None:
            identity = _identity(item)
            found = _first_left(versions.get(identity), taken) if identity else None
        if found is None:
            result.append(item)
            continue
        taken.add(found)
        result.append(merged(document[found], before[found], item))
    return result


def _first_left(places: deque[int] | None, taken: set[int]) -> int | None:
    while places and places[0] in taken:
        places.popleft()
    return places[0] if places else None


def _identity(item: object) -> str:
    """Return the first identifying field of an item and its value, or an empty text if there is none."""
    if isinstance(item, dict):
        for name in _NAMES:
            if name in item:
                return f"{name}={item[name]!r}"
    return ""
