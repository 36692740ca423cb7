"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import cast

import msgspec

from bayplan.base.go_text.json import go_json

_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


MAX_OPERATIONS = 10_000
"""Maximum number of operations in a patch, as in kube-apiserver."""
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""Maximum bytes of JSON that the copy operations of a patch may add, as in kube-apiserver."""
MAX_MOVED_ITEMS = 200_000_000
"""Maximum number of list items that insertions and removals may move, which takes a quarter of a second."""


class JsonPatchError(ValueError):
    """An operation cannot be applied: its path does not exist, its test fails, or it is unknown."""


def merge_patch(document: object, patch: object) -> object:
    """Return a document with a merge patch applied; both stay unchanged.

    As in upstream's library, null fields are removed from objects in lists of the patch.
    """
    if not isinstance(patch, dict):
        return patch if isinstance(document, dict) else _without_nulls(patch)
    out = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = merge_patch(out.get(name), value)
    return out


def _without_nulls(value: object) -> object:
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


def json_patch(document: object, operations: list[dict[str, object]]) -> object:
    """Return a document with operations applied in order. The given document does not change.

    Raises:
        JsonPatchError: an operation cannot be applied, or the operations copy or move too much.
    """
    work = _Work()
    document = msgspec.json.decode(msgspec.json.encode(document))
    for operation in operations:
        perform = _OPERATIONS.get(str(operation.get("op")))
        if perform is None:
            raise JsonPatchError(f"unknown operation {operation.get('op')!r}")
        if not isinstance(operation.get("path"), str):
            raise JsonPatchError(f"operation {operation.get('op')!r} lacks a path")
        document = perform(document, operation, work)
    return msgspec.json.decode(msgspec.json.encode(document)) if work.copied_bytes else document


def check_spelling(document: object, operations: list[dict[str, object]], body: bytes) -> None:
    """Raise an error if a test compares texts that JSON spells differently, as upstream's library compares them.

    Args:
        document: the document before the patch. Go spells `<`, `>`, `&` and two line separators as escapes.
        operations: the operations, which can be applied.
        body: the patch as the client sent it.

    Raises:
        JsonPatchError: the test of such a text fails.
    """
    if not _SPELLED.search(body) or not any(each.get("op") == "test" for each in operations):
        return
    spelled = cast("list[dict[str, object]]", _spelled(body))
    for each, sent in zip(spelled, operations, strict=True):
        each.update((name, sent[name]) for name in _POINTERS if name in sent)
    json_patch(_spelled(go_json(document).encode()), spelled)


def _spelled(text: bytes) -> object:
    """Return the value of a JSON text. Strings keep their JSON spelling; keys are decoded."""
    return _with_decoded_keys(msgspec.json.decode(_ESCAPE.sub(_escaped, text)))


def _with_decoded_keys(value: object) -> object:
    if isinstance(value, list):
        return [_with_decoded_keys(item) for item in value]
    if isinstance(value, dict):
        return {_decoded(name): _with_decoded_keys(item) for name, item in value.items()}
    return value


def _decoded(spelled: str) -> str:
    if "\\" not in spelled:
        return spelled
    # As in Go, half of a surrogate pair becomes the replacement character.
    return str(json.loads(f'"{spelled}"')).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_POINTERS = ("op", "path", "from")
_SPELLED = re.compile(rb"[<>&\\]|\xe2\x80[\xa8\xa9]")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)


def _escaped(match: re.Match[bytes]) -> bytes:
    """Return JSON whose text is the given escape sequence."""
    return b"\\\\u0022" if match[1] == b'"' else b"\\\\" + match[1]


class _Work:
    """The number of bytes copied and of items moved by the operations of a patch."""

    __slots__ = ("copied_bytes", "moved_items")

    def __init__(self) -> None:
        self.copied_bytes = 0
        self.moved_items = 0

    def copy(self, size: int) -> None:
        """Add copied bytes of JSON; raise JsonPatchError if the limit is exceeded."""
        self.copied_bytes += size
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise JsonPatchError(f"copies of {self.copied_bytes} bytes, which is more than {MAX_COPIED_BYTES}")

    def move(self, count: int) -> None:
        """Add items that an insertion or removal moves; raise JsonPatchError if the limit is exceeded."""
        self.moved_items += count
        if self.moved_items > MAX_MOVED_ITEMS:
            raise JsonPatchError(f"insertions and removals that move more than {MAX_MOVED_ITEMS} items of lists")


def _add(document: object, operation: dict[str, object], work: _Work) -> object:
    return _put(document, _tokens(operation["path"]), operation.get("value"), work)


def _remove(document: object, operation: dict[str, object], work: _Work) -> object:
    return _take(document, _tokens(operation["path"]), work)[0]


def _replace(document: object, operation: dict[str, object], work: _Work) -> object:
    value = operation.get("value")
    if not operation["path"]:
        # Only a replacement and a test may name the whole document.
        if not isinstance(value, dict | list):
            raise JsonPatchError("the whole document can only be replaced by an object or a list")
        return value
    tokens = _tokens(operation["path"])
    if not isinstance(_find(document, tokens[:-1]), dict):
        _find(document, tokens)
    # A member of an object need not exist: upstream's library only reports missing items of lists.
    return _put(document, tokens, value, None)


def _move(document: object, operation: dict[str, object], work: _Work) -> object:
    document, value = _take(document, _tokens(operation.get("from")), work)
    return _put(document, _tokens(operation["path"]), value, work)


def _copy(document: object, operation: dict[str, object], work: _Work) -> object:
    tokens = _tokens(operation.get("from"))
    text = msgspec.json.encode(_find_or_null(document, tokens))
    work.copy(len(text))
    # The copy stays encoded until an operation accesses it, so nested copies that exceed the limit are never decoded.
    return _put(document, _tokens(operation["path"]), msgspec.Raw(text), work)


def _test(document: object, operation: dict[str, object], work: _Work) -> object:
    wanted = operation.get("value")
    found = _find_or_null(document, _tokens(operation["path"])) if operation["path"] else document
    if not _same(found, wanted):
        raise JsonPatchError(f"testing value {operation['path']} failed")
    return document


_OPERATIONS: dict[str, Callable[[object, dict[str, object], _Work], object]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _tokens(pointer: object) -> list[str]:
    """Return the parts of a pointer. As in upstream's library, text before the first slash is ignored."""
    if not isinstance(pointer, str) or "/" not in pointer:
        raise JsonPatchError(f"not a pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _index(items: list[object], token: str, *, insert: bool) -> int:
    if token == "-" and insert:
        return len(items)
    if not _INDEX.fullmatch(token):
        raise JsonPatchError(f"not an index: {token[:100]!r}")
    index = int(token)
    if index < 0:
        # An insertion counts back from the position after the last item.
        index += len(items) + insert
    if not 0 <= index < len(items) + insert:
        raise JsonPatchError(f"no item {token}")
    return index


def _find(document: object, tokens: list[str]) -> object:
    """Return the value at a path, and decode encoded copies on the way."""
    for token in tokens:
        if isinstance(document, dict) and token in document:
            document = _member(document, token)
        elif isinstance(document, list):
            document = _item(document, _index(document, token, insert=False))
        else:
            raise JsonPatchError(f"no member {token!r}")
    return document


def _find_or_null(document: object, tokens: list[str]) -> object:
    """Return the value at a path; None for a missing member, because upstream's library treats it like null."""
    parent = _find(document, tokens[:-1])
    if isinstance(parent, dict) and tokens[-1] not in parent:
        return None
    return _find(parent, tokens[-1:])


def _member(parent: dict[str, object], name: str) -> object:
    found = parent[name]
    if isinstance(found, msgspec.Raw):
        found = parent[name] = msgspec.json.decode(found)
    return found


def _item(parent: list[object], index: int) -> object:
    found = parent[index]
    if isinstance(found, msgspec.Raw):
        found = parent[index] = msgspec.json.decode(found)
    return found


def _same(found: object, wanted: object) -> bool:
    """Return whether two values are equal as JSON text, where true and 1.0 differ from 1."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_same(_member(found, name), item) for name, item in wanted.items())
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(_same(_item(found, index), item) for index, item in enumerate(wanted))
    return found == wanted and type(found) is type(wanted)


def _put(document: object, tokens: list[str], value: object, inserts: _Work | None) -> object:
    """Set a member or replace an item; if `inserts` is given, insert the item, and count the moved items in `inserts`."""
    parent = _find(document, tokens[:-1])
    if isinstance(parent, dict):
        parent[tokens[-1]] = value
    elif isinstance(parent, list):
        index = _index(parent, tokens[-1], insert=inserts is not None)
        if inserts is not None:
            inserts.move(len(parent) - index)
            parent.insert(index, value)
        else:
            parent[index] = value
    else:
        raise JsonPatchError(f"nothing can be put at {tokens[-1]!r}")
    return document


def _take(document: object, tokens: list[str], work: _Work) -> tuple[object, object]:
    value = _find(document, tokens)
    parent = _find(document, tokens[:-1])
    if isinstance(parent, dict):
        del parent[tokens[-1]]
    elif isinstance(parent, list):
        index = _index(parent, tokens[-1], insert=False)
        work.move(len(parent) - index)
        del parent[index]
    return document, value
