"""What a controller changed on a typed object, done to the document: fields that typed objects don't have stay as they are.

Both versions of the typed object come as plain data. The one before was decoded from the document, so its lists stand item
for item beside those of the document; that is how an item finds its document without anybody knowing keys of lists.
"""

from __future__ import annotations

from bayplan.base.plain_data import Document

_NAMES = ("type", "name", "uid", "key", "ip", "containerPort")
_ABSENT = object()


def merged(document: object, before: object, after: object) -> object:
    """Return a part of a document with the changes between two versions of its typed form.

    Args:
        document: the part as it is stored; not changed.
        before: the typed part that was decoded from it, as plain data.
        after: the typed part as it shall be, as plain data; defaults left out.
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
            # At its default now, which is what an absent field means.
            result.pop(name, None)
    for name, value in after.items():
        was = before.get(name, _ABSENT)
        if was is _ABSENT or name not in document:
            result[name] = value
        elif was != value:
            result[name] = merged(document[name], was, value)
    return result


def _merged_items(document: list[object], before: list[object], after: list[object]) -> list[object]:
    result: list[object] = []
    left = list(range(len(before)))
    for item in after:
        at = next((index for index in left if before[index] == item), None)
        if at is None:
            at = next((index for index in left if _is_same(before[index], item)), None)
        if at is None:
            result.append(item)
            continue
        left.remove(at)
        result.append(merged(document[at], before[at], item))
    return result


def _is_same(one: object, other: object) -> bool:
    """Say whether two items are versions of one: the first field by which items of lists are told apart is equal."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    for name in _NAMES:
        if name in one or name in other:
            return one.get(name) == other.get(name)
    return False
