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


class PatchLimitError(JsonPatchError):
    """The operations copy or move more than a limit allows."""


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
    patched = PatchedDocument(document)
    for operation in operations:
        patched.apply(operation)
    return patched.result()


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


class PatchedDocument:
    """A document that operations are applied to, and what they have done to it.

    As in upstream's library, the keys of each object that an operation opens are sorted; the others keep their order.
    The library opens the objects on the way to a value, and those that a test compares.

    Args:
        document: the document, which stays unchanged.

    Attributes:
        document: the patched document.
        copied_bytes: the number of bytes copied.
        moved_items: the number of list items moved.
        opened: the opened objects, by `id`.
    """

    __slots__ = ("copied_bytes", "document", "moved_items", "opened")

    def __init__(self, document: object) -> None:
        self.document: object = msgspec.json.decode(msgspec.json.encode(document))
        self.copied_bytes = 0
        self.moved_items = 0
        self.opened: dict[int, dict[str, object]] = {}
        self.open(self.document)

    def apply(self, operation: dict[str, object]) -> None:
        """Apply an operation. If it raises JsonPatchError, the document stays as it is."""
        perform = _OPERATIONS.get(str(operation.get("op")))
        if perform is None:
            raise JsonPatchError(f"unknown operation {operation.get('op')!r}")
        if not isinstance(operation.get("path"), str):
            raise JsonPatchError(f"operation {operation.get('op')!r} lacks a path")
        perform(self, operation)

    def result(self) -> object:
        """Return the document after the operations so far."""
        for each in self.opened.values():
            _sort(each)
        return msgspec.json.decode(msgspec.json.encode(self.document)) if self.copied_bytes else self.document

    def copy(self, size: int) -> None:
        """Add copied bytes of JSON; raise PatchLimitError if the limit is exceeded."""
        self.copied_bytes += size
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise PatchLimitError(f"copies of {self.copied_bytes} bytes, which is more than {MAX_COPIED_BYTES}")

    def move(self, count: int) -> None:
        """Add items that an insertion or removal moves; raise PatchLimitError if the limit is exceeded."""
        self.moved_items += count
        if self.moved_items > MAX_MOVED_ITEMS:
            raise PatchLimitError(f"insertions and removals that move more than {MAX_MOVED_ITEMS} items of lists")

    def open(self, value: object) -> None:
        """Record that an operation opens a value."""
        if isinstance(value, dict):
            self.opened[id(value)] = value

    def target(self, pointer: object) -> tuple[object, str]:
        """Return the value that contains the target of a pointer, and the last token. All values on the way are opened.

        As in upstream's library, text before the first slash of a pointer is ignored.
        """
        if not isinstance(pointer, str) or "/" not in pointer:
            raise JsonPatchError(f"not a pointer: {pointer!r}")
        *above, last = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
        found = self.document
        for token in above:
            found = _child(found, token)
            self.open(found)
        return found, last

    def sort_opened(self, value: object) -> None:
        """Sort the keys of the opened objects in a value."""
        if isinstance(value, dict):
            if id(value) in self.opened:
                _sort(value)
            for each in value.values():
                self.sort_opened(each)
        elif isinstance(value, list):
            for each in value:
                self.sort_opened(each)


def _sort(value: dict[str, object]) -> None:
    """Sort the keys of an object."""
    items = sorted(value.items())
    value.clear()
    value.update(items)


def _add(work: PatchedDocument, operation: dict[str, object]) -> None:
    _put(work, operation["path"], operation.get("value"))


def _remove(work: PatchedDocument, operation: dict[str, object]) -> None:
    _take(work, operation["path"])


def _replace(work: PatchedDocument, operation: dict[str, object]) -> None:
    value = operation.get("value")
    if not operation["path"]:
        # Only a replacement and a test may name the whole document.
        if not isinstance(value, dict | list):
            raise JsonPatchError("the whole document can only be replaced by an object or a list")
        work.document = value
        work.open(value)
        return
    parent, name = work.target(operation["path"])
    if isinstance(parent, list):
        parent[list_index(parent, name, insert=False)] = value
    else:
        # A member of an object need not exist: upstream's library only reports missing items of lists.
        _set_member(parent, name, value)


def _move(work: PatchedDocument, operation: dict[str, object]) -> None:
    value = _take(work, operation.get("from"))
    try:
        _put(work, operation["path"], value)
    except JsonPatchError:
        _put(work, operation.get("from"), value)
        raise


def _copy(work: PatchedDocument, operation: dict[str, object]) -> None:
    value = _child_or_null(*work.target(operation.get("from")))
    # The destination is opened before the copy is encoded.
    work.target(operation["path"])
    work.sort_opened(value)
    text = msgspec.json.encode(value)
    work.copy(len(text))
    # The copy stays encoded until an operation accesses it, so nested copies that exceed the limit are never decoded.
    _put(work, operation["path"], msgspec.Raw(text))


def _test(work: PatchedDocument, operation: dict[str, object]) -> None:
    path = operation["path"]
    found = _child_or_null(*work.target(path)) if path else work.document
    if not _same(found, operation.get("value"), work):
        raise JsonPatchError(f"testing value {path} failed")


_OPERATIONS: dict[str, Callable[[PatchedDocument, dict[str, object]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def list_index(items: list[object], token: str, *, insert: bool) -> int:
    """Return the index that a token of a pointer means: that of an item, or of a new one (`insert`).

    Raises:
        JsonPatchError: the token is not an index, or there is no such item.
    """
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


def _child(parent: object, token: str) -> object:
    """Return a member of an object or an item of a list."""
    if isinstance(parent, list):
        return _item(parent, list_index(parent, token, insert=False))
    if isinstance(parent, dict) and token in parent:
        return _member(parent, token)
    raise JsonPatchError(f"no member {token!r}")


def _child_or_null(parent: object, token: str) -> object:
    """Return a member or an item; None for a missing member, because upstream's library treats it like null."""
    return None if isinstance(parent, dict) and token not in parent else _child(parent, token)


def _member(parent: dict[str, object], name: str) -> object:
    """Return a member of an object, and decode it if it is an encoded copy."""
    found = parent[name]
    if isinstance(found, msgspec.Raw):
        found = parent[name] = msgspec.json.decode(found)
    return found


def _item(parent: list[object], index: int) -> object:
    """Return an item of a list, and decode it if it is an encoded copy."""
    found = parent[index]
    if isinstance(found, msgspec.Raw):
        found = parent[index] = msgspec.json.decode(found)
    return found


def _same(found: object, wanted: object, work: PatchedDocument) -> bool:
    """Return whether two values are equal as JSON text, where true and 1.0 differ from 1. The found objects are opened."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        work.open(found)
        return found.keys() == wanted.keys() and all(
            _same(_member(found, name), item, work) for name, item in wanted.items()
        )
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            _same(_item(found, index), item, work) for index, item in enumerate(wanted)
        )
    return found == wanted and type(found) is type(wanted)


def _put(work: PatchedDocument, pointer: object, value: object) -> None:
    """Set a member of an object, or insert an item into a list."""
    parent, name = work.target(pointer)
    if isinstance(parent, list):
        index = list_index(parent, name, insert=True)
        work.move(len(parent) - index)
        parent.insert(index, value)
    else:
        _set_member(parent, name, value)


def _set_member(parent: object, name: str, value: object) -> None:
    if not isinstance(parent, dict):
        raise JsonPatchError(f"nothing can be put at {name!r}")
    parent[name] = value


def _take(work: PatchedDocument, pointer: object) -> object:
    """Remove a member of an object or an item of a list, and return it."""
    parent, name = work.target(pointer)
    value = _child(parent, name)
    if isinstance(parent, list):
        index = list_index(parent, name, insert=False)
        work.move(len(parent) - index)
        del parent[index]
    elif isinstance(parent, dict):
        del parent[name]
    return value
