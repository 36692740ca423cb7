"""Merges changes of a typed object into the stored object; fields without a typed form do not change.

Both versions of the typed object are plain data. The old version was decoded from the stored object, so its
lists correspond to the stored lists item by item, and no list keys are needed to find the stored form of an item.
"""

from __future__ import annotations

from collections import deque

from bayplan.base.plain_data import Document

_NAMES = ("type", "name", "uid", "key", "ip", "containerPort")
_ABSENT = object()


def merged(document: object, before: object, after: object) -> object:
    """Return a part of a stored object with the changes between two versions of its typed form.

    Args:
        document: the stored part; it is not changed.
        before: the typed form that was decoded from it, as plain data.
        after: the new typed form, as plain data without defaults.
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
            # The value is now the default, and typed data omits defaults.
            result.pop(name, None)
    for name, value in after.items():
        was = before.get(name, _ABSENT)
        if was is _ABSENT or name not in document:
            result[name] = value
        elif was != value:
            result[name] = merged(document[name], was, value)
    return result


def _merged_items(document: list[object], before: list[object], after: list[object]) -> list[object]:
    """Merge lists in linear time.

    Match each new item with the first unmatched old item that is equal, else with the same identity.
    """
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
    """Return the first identifying field of an item with its value, or "" if it has none."""
    if isinstance(item, dict):
        for name in _NAMES:
            if name in item:
                return f"{name}={item[name]!r}"
    return ""
