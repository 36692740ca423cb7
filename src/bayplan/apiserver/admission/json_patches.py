"""JSON patches of webhooks and policies, with Go's error messages.

Source of the messages: gopkg.in/evanphx/json-patch.v4, with which kube-apiserver applies patches.
"""

from __future__ import annotations

from bayplan.apiserver.patches.json_patch import (
    MAX_OPERATIONS,
    JsonPatchError,
    PatchedDocument,
    PatchLimitError,
    list_index,
)
from bayplan.base.plain_data import Document

_MISSING = "missing value"


class PatchProblem(Exception):
    """A patch cannot be applied.

    Attributes:
        is_test: whether the reason is a ``test`` operation that found a different value.
    """

    def __init__(self, text: str, *, is_test: bool = False) -> None:
        self.is_test = is_test
        super().__init__(text)


def apply_operations(document: Document, operations: list[Document]) -> Document:
    """Return an object with a patch applied.

    Raises:
        PatchProblem: an operation cannot be applied, there are too many operations, or the result is not an object.
    """
    if len(operations) > MAX_OPERATIONS:
        raise PatchProblem(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    patched = PatchedDocument(document)
    for operation in operations:
        try:
            patched.apply(operation)
        except PatchLimitError as problem:
            raise PatchProblem(str(problem)) from None
        except JsonPatchError:
            raise _problem_of(operation, patched.result()) from None
    found = patched.result()
    if not isinstance(found, dict):
        raise PatchProblem("json: cannot unmarshal into Go value of type map[string]interface {}")
    return found


def _problem_of(operation: Document, document: object) -> PatchProblem:
    """Return Go's message for an operation that cannot be applied to a document."""
    name, path = str(operation.get("op")), operation.get("path")
    if not isinstance(path, str):
        return PatchProblem(f"{name} operation failed to decode path: operation missing path field: {_MISSING}")
    where = path
    if name in ("move", "copy"):
        where = str(operation.get("from") or "")
        if _container(document, where) is None:
            return PatchProblem(f"{name} operation does not apply: doc is missing from path: {where}: {_MISSING}")
        why = _member_problem(document, where)
        if why:
            word = "from" if name == "copy" else "path"
            shown = where if name == "copy" else where.rpartition("/")[2]
            return PatchProblem(f"error in {name} for {word}: '{shown}': {why}")
        return PatchProblem(f"{name} operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    if name == "test":
        if _container(document, path) is None:
            return PatchProblem(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        return PatchProblem(f"testing value {path} failed: test failed", is_test=True)
    if name not in ("add", "remove", "replace"):
        return PatchProblem(f"Unexpected kind: {name}")
    if _container(document, path) is None:
        quoted = path if name == "replace" else f'"{path}"'
        return PatchProblem(f"{name} operation does not apply: doc is missing path: {quoted}: {_MISSING}")
    if name == "replace":
        return PatchProblem(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}")
    return PatchProblem(f"error in {name} for path: '{path}': {_member_problem(document, path)}")


def _container(document: object, path: str) -> object:
    """Return the list or map that contains a path's last element, or None if it does not exist."""
    for token in path.split("/")[1:-1]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and _has_item(document, key):
            document = document[list_index(document, key, insert=False)]
        else:
            return None
    return document if isinstance(document, dict | list) else None


def _has_item(items: list[object], key: str) -> bool:
    try:
        list_index(items, key, insert=False)
    except JsonPatchError:
        return False
    return True


def _member_problem(document: object, path: str) -> str:
    container, key = _container(document, path), path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    if isinstance(container, list):
        if _has_item(container, key):
            return ""
        if key.removeprefix("-").isdigit():
            return f"Unable to access invalid index: {key}: invalid index referenced"
        return f"value was not a proper array index: '{key}': strconv.Atoi: parsing \"{key}\": invalid syntax"
    missing = isinstance(container, dict) and key not in container
    return f"Unable to remove nonexistent key: {key}: {_MISSING}" if missing else ""
