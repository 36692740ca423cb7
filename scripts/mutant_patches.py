"""One-field mutants as patches: JSON, merge and strategic patches and applied configurations."""

from __future__ import annotations

from collections.abc import Iterator

from mutant_requests import APPLY, JSON_PATCH, MERGE, STRATEGIC, Ask
from mutations import Document, Schema, changed_objects


def patch_asks(schema: Schema, path: str, body: Document, seed: str, most: int, *, prefix: str = "") -> Iterator[Ask]:
    """Yield one-field mutants as patches; the media types take turns."""
    mutants = changed_objects(schema, body, f"{seed} patch", most, None, prefix=prefix)
    for index, (mutation, changed) in enumerate(mutants):
        media = (MERGE, STRATEGIC, JSON_PATCH, APPLY)[index % 4]
        sent: object = _merge_patch(body, changed)
        where = path
        if media == JSON_PATCH:
            sent = _operations(body, changed, "")
        elif media == APPLY:
            where += "?fieldManager=me" + ("&force=true" if index % 8 > 3 else "")
            sent = changed
        yield Ask(
            "status" if prefix else "patch",
            "PATCH",
            where,
            f"{media[12:21]} {mutation}"[:200],
            sent,
            {"Content-Type": media},
        )


def _merge_patch(old: Document, new: Document) -> Document:
    """Return the merge patch that turns one document into another."""
    found: Document = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = _merge_patch(before, value)
            if inner:
                found[name] = inner
        elif name not in old or type(before) is not type(value) or before != value:
            found[name] = value
    return found


def _operations(old: object, new: object, path: str) -> list[Document]:
    """Return the operations of the JSON patch that turns one value into another."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: list[Document] = []
        for name in [*old, *(each for each in new if each not in old)]:
            inner = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
            if name not in new:
                found.append({"op": "remove", "path": inner})
            elif name not in old:
                found.append({"op": "add", "path": inner, "value": new[name]})
            else:
                found += _operations(old[name], new[name], inner)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            each
            for at, (one, other) in enumerate(zip(old, new, strict=True))
            for each in _operations(one, other, f"{path}/{at}")
        ]
    return [] if old == new and type(old) is type(new) else [{"op": "replace", "path": path, "value": new}]
