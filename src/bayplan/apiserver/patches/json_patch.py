"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class JsonPatchError(ValueError):
    """An operation that can't be carried out: a path that is not there, a test that fails, an unknown operation."""


def merge_patch(document: object, patch: object) -> object:
    """Return a document with a merge patch applied; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    out = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = merge_patch(out.get(name), value)
    return out


def json_patch(document: object, operations: list[dict[str, object]]) -> object:
    """Return a document with operations applied in order.

    Raises:
        JsonPatchError: one of them can't be carried out; the document is as it was.
    """
    document = msgspec.json.decode(msgspec.json.encode(document))
    for operation in operations:
        carry_out = _OPERATIONS.get(str(operation.get("op")))
        if carry_out is None or not isinstance(operation.get("path"), str):
            raise JsonPatchError(f"unexpected operation {operation.get('op')!r}")
        document = carry_out(document, operation)
    return document


def _add(document: object, operation: dict[str, object]) -> object:
    return _put(document, _tokens(operation["path"]), operation.get("value"), insert=True)


def _remove(document: object, operation: dict[str, object]) -> object:
    return _take(document, _tokens(operation["path"]))[0]


def _replace(document: object, operation: dict[str, object]) -> object:
    tokens = _tokens(operation["path"])
    _find(document, tokens)
    return _put(document, tokens, operation.get("value"), insert=False)


def _move(document: object, operation: dict[str, object]) -> object:
    document, value = _take(document, _tokens(operation.get("from")))
    return _put(document, _tokens(operation["path"]), value, insert=True)


def _copy(document: object, operation: dict[str, object]) -> object:
    value = msgspec.json.decode(msgspec.json.encode(_find(document, _tokens(operation.get("from")))))
    return _put(document, _tokens(operation["path"]), value, insert=True)


def _test(document: object, operation: dict[str, object]) -> object:
    wanted = operation.get("value")
    found = _find(document, _tokens(operation["path"]))
    if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
        raise JsonPatchError(f"testing value {operation['path']} failed")
    return document


_OPERATIONS: dict[str, Callable[[object, dict[str, object]], object]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _tokens(pointer: object) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise JsonPatchError(f"not a pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _index(items: list[object], token: str, *, insert: bool) -> int:
    if token == "-" and insert:
        return len(items)
    try:
        index = int(token)
    except ValueError:
        raise JsonPatchError(f"not an index: {token!r}") from None
    if index < 0:
        index += len(items)
    if not 0 <= index < len(items) + insert:
        raise JsonPatchError(f"no item {token}")
    return index


def _find(document: object, tokens: list[str]) -> object:
    for token in tokens:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list):
            document = document[_index(document, token, insert=False)]
        else:
            raise JsonPatchError(f"nothing at {token!r}")
    return document


def _put(document: object, tokens: list[str], value: object, *, insert: bool) -> object:
    if not tokens:
        return value
    parent = _find(document, tokens[:-1])
    if isinstance(parent, dict):
        parent[tokens[-1]] = value
    elif isinstance(parent, list):
        index = _index(parent, tokens[-1], insert=insert)
        if insert:
            parent.insert(index, value)
        else:
            parent[index] = value
    else:
        raise JsonPatchError(f"nothing can be put at {tokens[-1]!r}")
    return document


def _take(document: object, tokens: list[str]) -> tuple[object, object]:
    if not tokens:
        raise JsonPatchError("the whole document can't be removed")
    value = _find(document, tokens)
    parent = _find(document, tokens[:-1])
    if isinstance(parent, dict):
        del parent[tokens[-1]]
    elif isinstance(parent, list):
        del parent[_index(parent, tokens[-1], insert=False)]
    return document, value
