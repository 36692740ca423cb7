"""The order of keys in the JSON of a patched object, which some errors quote.

Upstream encodes the object as Go does, the fields of a struct in their order and the keys of a map sorted. Its patch library then
sorts the keys of each object that the patch opens.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.apiserver.schema.facts import PlacedField, placed_fields
from bayplan.base.plain_data import Document

_FIELDS_V1 = "fieldsV1"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"


def in_go_order(type_name: str, value: object) -> object:
    """Return JSON in the order in which Go encodes it.

    Args:
        type_name: the name of the type in OpenAPI; empty for an untyped value, whose keys are all sorted.
        value: the decoded JSON.
    """
    if isinstance(value, list):
        return [in_go_order(type_name, each) for each in value]
    if not isinstance(value, dict):
        return value
    if type_name == _RAW:
        return value
    fields = placed_fields(type_name) if type_name else {}
    if not fields:
        return {name: in_go_order(type_name, value[name]) for name in sorted(value)}
    end = len(fields)
    ordered = sorted(value, key=lambda name: (fields[name].position if name in fields else end, name))
    return {name: _field(name, fields.get(name), value[name]) for name in ordered}


def _field(name: str, field: PlacedField | None, value: object) -> object:
    if field is None or name == _FIELDS_V1:
        return in_go_order("", value)
    return _contents(field.facts.type, field.containers, value)


def _contents(type_name: str, containers: tuple[str, ...], value: object) -> object:
    """Return the value of a field. `containers`: the lists and maps around values of the type, outermost first."""
    if not containers:
        return in_go_order(type_name, value)
    if isinstance(value, dict):
        return {name: _contents(type_name, containers[1:], value[name]) for name in sorted(value)}
    return [_contents(type_name, containers[1:], each) for each in value] if isinstance(value, list) else value


def opened_by_merge(value: Document, changes: object) -> Document:
    """Return JSON with sorted keys in every object that a merge patch opens, which includes all objects in the patch."""
    if not isinstance(changes, dict):
        return value
    return {name: _opened(value[name], changes.get(name)) for name in sorted(value)}


def _opened(value: object, changes: object) -> object:
    if isinstance(value, list) and isinstance(changes, list):
        return in_go_order("", value)
    return opened_by_merge(value, changes) if isinstance(value, dict) else value


def opened_by_operations(document: Document, operations: object) -> object:
    """Return the JSON after a JSON patch that can be applied, with sorted keys in every object that the patch opens.

    Args:
        document: the object before the patch, in Go's order.
        operations: the operations.
    """
    work = _Opening(document)
    for operation in operations if isinstance(operations, list) else ():
        if isinstance(operation, Mapping) and isinstance(operation.get("path"), str):
            work.perform(operation)
    return work.encoded(work.document)


class _Opening:
    """Applies the operations of a JSON patch, and records the objects that upstream's patch library decodes for them.

    It decodes the objects on the way to a value, and those that a test compares. A copy is encoded at once.
    """

    def __init__(self, document: Document) -> None:
        self.document: object = _copied(document)
        self._opened = {id(self.document): self.document}

    def perform(self, operation: Mapping[str, object]) -> None:
        path, source = operation.get("path"), operation.get("from")
        kind = operation.get("op")
        if path == "" and kind == "replace":
            self.document = _copied(operation.get("value"))
            self._open(self.document)
            return
        value = _copied(operation.get("value"))
        if kind in ("move", "copy"):
            parent, name = self._parent(source)
            value = _get(parent, name)
            if kind == "move":
                _take(parent, name)
        parent, name = self._parent(path) if path else (None, "")
        if kind == "test":
            self._open_all(_get(parent, name) if path else self.document)
        elif kind == "remove":
            _take(parent, name)
        else:
            # A copy is encoded after its destination was opened.
            _set(parent, name, self.encoded(value) if kind == "copy" else value, inserts=kind != "replace")

    def encoded(self, value: object) -> object:
        """Return a copy of a value, with sorted keys in the objects that were opened."""
        if isinstance(value, dict):
            names = sorted(value) if id(value) in self._opened else value
            return {name: self.encoded(value[name]) for name in names}
        return [self.encoded(each) for each in value] if isinstance(value, list) else value

    def _open(self, value: object) -> None:
        self._opened[id(value)] = value

    def _open_all(self, value: object) -> None:
        self._open(value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._open_all(each)

    def _parent(self, pointer: object) -> tuple[object, str]:
        """Return the value that contains the target of a pointer, and the last token. All values on the way are opened."""
        *above, last = (each.replace("~1", "/").replace("~0", "~") for each in str(pointer).split("/")[1:])
        found = self.document
        for token in above:
            found = _get(found, token)
            self._open(found)
        return found, last


def _copied(value: object) -> object:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _get(parent: object, token: str) -> object:
    if isinstance(parent, dict):
        return parent.get(token)
    return parent[int(token)] if isinstance(parent, list) else None


def _take(parent: object, token: str) -> None:
    if isinstance(parent, dict):
        parent.pop(token, None)
    elif isinstance(parent, list):
        del parent[int(token)]


def _set(parent: object, token: str, value: object, *, inserts: bool) -> None:
    if isinstance(parent, dict):
        parent[token] = value
    elif isinstance(parent, list):
        if not inserts:
            parent[int(token)] = value
            return
        index = len(parent) if token == "-" else int(token)
        parent.insert(index if index >= 0 else index + len(parent) + 1, value)
