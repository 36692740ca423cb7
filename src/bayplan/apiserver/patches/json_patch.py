"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386).

Source of the messages: gopkg.in/evanphx/json-patch.v4 v4.13.0, with which kube-apiserver applies JSON patches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import msgspec

from bayplan.base.go_text.json import go_json
from bayplan.objects.selectors import quote

MAX_OPERATIONS = 10_000
"""Maximum number of operations in a patch, as in kube-apiserver."""
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""Maximum bytes of JSON that the copy operations of a patch may add, as in kube-apiserver."""
MAX_MOVED_ITEMS = 200_000_000
"""Maximum number of list items that insertions and removals may move, which takes a quarter of a second."""

_INT64_DIGITS = 19
_INDEX = re.compile(r"[+-]?[0-9]+")
_MISSING = "missing value"
_NO_PATH = f"operation missing path field: {_MISSING}"

_Container = dict[str, object] | list[object]


class JsonPatchError(ValueError):
    """An operation cannot be applied: its path does not exist, its test fails, or it is unknown. The text is that of Go."""


class PatchTestError(JsonPatchError):
    """A ``test`` operation found a different value."""


class _NotAnIndex(JsonPatchError):
    """A token of a pointer into a list is not an integer."""


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

    As in upstream's library, the keys of each object that an operation opens are sorted; the others keep their order.
    The library opens the objects on the way to a value, and those that a test compares.

    Raises:
        JsonPatchError: an operation cannot be applied, or the operations copy or move too much.
    """
    work = _Work(msgspec.json.decode(msgspec.json.encode(document)))
    for operation in operations:
        name = operation.get("op")
        perform = _OPERATIONS.get(name) if isinstance(name, str) else None
        if perform is None:
            raise JsonPatchError(f"Unexpected kind: {name if isinstance(name, str) else 'unknown'}")
        perform(work, operation)
    for each in work.opened.values():
        _sort(each)
    return msgspec.json.decode(msgspec.json.encode(work.document)) if work.copied_bytes else work.document


def patch_object(document: dict[str, object], operations: list[dict[str, object]]) -> dict[str, object]:
    """Return an object with the patch of a webhook or policy applied; see `json_patch`.

    Raises:
        JsonPatchError: an operation cannot be applied, there are too many operations, or the result is not an object.
    """
    if len(operations) > MAX_OPERATIONS:
        raise JsonPatchError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    found = json_patch(document, operations)
    if not isinstance(found, dict):
        raise JsonPatchError("json: cannot unmarshal into Go value of type map[string]interface {}")
    return found


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
    """A document that is being patched, and what the operations have done to it.

    Attributes:
        document: the patched document.
        copied_bytes: the number of bytes copied.
        moved_items: the number of list items moved.
        opened: the opened objects, by `id`.
    """

    __slots__ = ("copied_bytes", "document", "moved_items", "opened")

    def __init__(self, document: object) -> None:
        self.document = document
        self.copied_bytes = 0
        self.moved_items = 0
        self.opened: dict[int, dict[str, object]] = {}
        self.open(document)

    def copy(self, size: int) -> None:
        """Add copied bytes of JSON; raise JsonPatchError if the limit is exceeded."""
        self.copied_bytes += size
        if self.copied_bytes > MAX_COPIED_BYTES:
            raise JsonPatchError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self.copied_bytes}, exceeding the limit {MAX_COPIED_BYTES}"
            )

    def move(self, count: int) -> None:
        """Add items that an insertion or removal moves; raise JsonPatchError if the limit is exceeded."""
        self.moved_items += count
        if self.moved_items > MAX_MOVED_ITEMS:
            raise JsonPatchError(f"insertions and removals that move more than {MAX_MOVED_ITEMS} items of lists")

    def open(self, value: object) -> None:
        """Record that an operation opens a value."""
        if isinstance(value, dict):
            self.opened[id(value)] = value

    def target(self, pointer: str, problem: str) -> tuple[_Container, str]:
        """Return the value that contains the target of a pointer, and the last token. All values on the way are opened.

        As in upstream's library, text before the first slash of a pointer is ignored.

        Raises:
            JsonPatchError: there is no such value; the text is `problem`, and that a value is missing.
        """
        _, slash, rest = pointer.partition("/")
        *above, last = [token.replace("~1", "/").replace("~0", "~") for token in rest.split("/")]
        found: object = self.document if slash else None
        for token in above:
            try:
                found = _get(found, token) if isinstance(found, dict | list) else None
            except JsonPatchError:
                found = None
            self.open(found)
        if not isinstance(found, dict | list):
            raise JsonPatchError(f"{problem}: {_MISSING}")
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


# --- operations -------------------------------------------------------------------------------------------------------


def _add(work: _Work, operation: dict[str, object]) -> None:
    path = _pointer(operation, "path", absent=_MISSING)
    parent, name = work.target(path, f'add operation does not apply: doc is missing path: "{path}"')
    with _during(f"error in add for path: '{path}'"):
        _put(work, parent, name, operation.get("value"))


def _remove(work: _Work, operation: dict[str, object]) -> None:
    path = _pointer(operation, "path", absent=_MISSING)
    parent, name = work.target(path, f'remove operation does not apply: doc is missing path: "{path}"')
    with _during(f"error in remove for path: '{path}'"):
        _take(work, parent, name)


def _replace(work: _Work, operation: dict[str, object]) -> None:
    path, value = _pointer(operation, "path", absent=_NO_PATH), operation.get("value")
    if not path:
        # Only a replacement and a test may name the whole document.
        if not isinstance(value, dict | list):
            raise JsonPatchError("replace operation value must be object or array: %!w(<nil>)")
        work.document = value
        work.open(value)
        return
    parent, name = work.target(path, f"replace operation does not apply: doc is missing path: {path}")
    if isinstance(parent, list):
        try:
            parent[_index(len(parent), name)] = value
        except JsonPatchError:
            raise JsonPatchError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None
    else:
        # A member of an object need not exist: upstream's library only reports missing items of lists.
        parent[name] = value


def _move(work: _Work, operation: dict[str, object]) -> None:
    source = _pointer(operation, "from", absent=f"operation, missing from field: {_MISSING}")
    parent, name = work.target(source, f"move operation does not apply: doc is missing from path: {source}")
    with _during(f"error in move for path: '{name}'"):
        value = _take(work, parent, name)
    path = _pointer(operation, "path", absent=_NO_PATH)
    parent, name = work.target(path, f"move operation does not apply: doc is missing destination path: {path}")
    with _during(f"error in move for path: '{path}'"):
        _put(work, parent, name, value)


def _copy(work: _Work, operation: dict[str, object]) -> None:
    source = _pointer(operation, "from", absent=f"operation, missing from field: {_MISSING}")
    parent, name = work.target(source, f"copy operation does not apply: doc is missing from path: {source}")
    with _during(f"error in copy for from: '{source}'"):
        value = _get(parent, name)
    path = _pointer(operation, "path", absent=_MISSING)
    # The destination is opened before the copy is encoded.
    parent, name = work.target(path, f"copy operation does not apply: doc is missing destination path: {path}")
    work.sort_opened(value)
    text = msgspec.json.encode(value)
    work.copy(0 if value is None else len(text))
    # The copy stays encoded until an operation accesses it, so nested copies that exceed the limit are never decoded.
    with _during("error while adding value during copy"):
        _put(work, parent, name, None if value is None else msgspec.Raw(text))


def _test(work: _Work, operation: dict[str, object]) -> None:
    path = _pointer(operation, "path", absent=_NO_PATH)
    found = work.document
    if path:
        parent, name = work.target(path, f"test operation does not apply: is missing path: {path}")
        with _during(f"error in test for path: '{path}'"):
            found = _get(parent, name)
    if not _same(found, operation.get("value"), work):
        raise PatchTestError(f"testing value {path} failed: test failed")


_OPERATIONS: dict[str, Callable[[_Work, dict[str, object]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _pointer(operation: dict[str, object], field: str, *, absent: str) -> str:
    """Return the pointer in a field of an operation.

    Raises:
        JsonPatchError: the field is not a string; `absent` is the reason if it is absent.
    """
    pointer = operation.get(field)
    if isinstance(pointer, str):
        return pointer
    is_absent = pointer is None or absent == _MISSING
    why = absent if is_absent else "json: cannot unmarshal into Go value of type string"
    raise JsonPatchError(f"{operation['op']} operation failed to decode {field}: {why}")


@contextmanager
def _during(step: str) -> Iterator[None]:
    """Prefix the message of a JsonPatchError with the step of an operation."""
    try:
        yield
    except JsonPatchError as problem:
        raise JsonPatchError(f"{step}: {problem}") from None


# --- members and items ------------------------------------------------------------------------------------------------


def _index(length: int, token: str) -> int:
    """Return the index below `length` that a token names; a negative one counts from `length`."""
    if not _INDEX.fullmatch(token):
        raise _NotAnIndex(f"strconv.Atoi: parsing {quote(token)}: invalid syntax")
    if len(token.lstrip("+-0")) > _INT64_DIGITS or not -(2**63) <= int(token) < 2**63:
        raise _NotAnIndex(f"strconv.Atoi: parsing {quote(token)}: value out of range")
    index = int(token)
    if not -length <= index < length:
        raise JsonPatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length


def _get(parent: _Container, token: str) -> object:
    """Return an item, or a member; None for a missing member, because upstream's library treats it like null."""
    if isinstance(parent, list):
        return _item(parent, _index(len(parent), token))
    return _member(parent, token) if token in parent else None


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


def _same(found: object, wanted: object, work: _Work) -> bool:
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


def _put(work: _Work, parent: _Container, name: str, value: object) -> None:
    """Set a member of an object, or insert an item into a list."""
    if isinstance(parent, dict):
        parent[name] = value
        return
    index = len(parent)
    if name != "-":
        try:
            # A negative index counts from the position after the last item.
            index = _index(len(parent) + 1, name)
        except _NotAnIndex as problem:
            raise JsonPatchError(f"value was not a proper array index: '{name}': {problem}") from None
    work.move(len(parent) - index)
    parent.insert(index, value)


def _take(work: _Work, parent: _Container, name: str) -> object:
    """Remove a member of an object or an item of a list, and return it."""
    if isinstance(parent, dict):
        if name not in parent:
            raise JsonPatchError(f"Unable to remove nonexistent key: {name}: {_MISSING}")
        value = _member(parent, name)
        del parent[name]
        return value
    index = _index(len(parent), name)
    value = _item(parent, index)
    work.move(len(parent) - index)
    del parent[index]
    return value
