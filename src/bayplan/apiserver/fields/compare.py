"""What differs between two documents of a type, as sets of fields: added, modified, removed; and the set of a document."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from bayplan.apiserver.fields.field_set import LEAF_NODE, Node, make_node
from bayplan.apiserver.fields.field_type import LEAF, UNTYPED, FieldType, Merge

_ABSENT: Final = object()
_LEAF, _STRUCT, _MAP, _SET, _KEYED, _UNTYPED = (
    Merge.LEAF,
    Merge.STRUCT,
    Merge.MAP,
    Merge.SET,
    Merge.KEYED_LIST,
    Merge.UNTYPED,
)
_encode = msgspec.json.encode


class Comparison(NamedTuple):
    """Fields that the newer document has and the older lacks, that differ, and that it lacks."""

    added: Node
    modified: Node
    removed: Node


def compare(kind: FieldType, old: dict[str, object], new: dict[str, object]) -> Comparison:
    """Compare two documents of a type."""
    added: Node = {}
    modified: Node = {}
    removed: Node = {}
    _compare_entries(kind, old, new, (added, modified, removed))
    return Comparison(added, modified, removed)


def element_of(kind: FieldType, item: object) -> str:
    """Return the path element of a list's item: by its keys, or by its value."""
    if kind.merge is _KEYED and isinstance(item, dict):
        keys = {}
        for key in kind.keys:
            value = item.get(key, kind.key_defaults.get(key, _ABSENT))
            if value is not _ABSENT:
                keys[key] = value
        return "k:" + _encode(keys).decode()
    return "v:" + _encode(item).decode()


def whole(kind: FieldType, value: object) -> Node:
    """Return the node of a value that is there as a whole, containers and leaves alike."""
    merge = kind.merge
    if merge is _LEAF or not value:
        return LEAF_NODE
    if merge is _UNTYPED:
        kind = deduced(kind, value)
        merge = kind.merge
    children: Node = {}
    if isinstance(value, dict):
        if merge is _STRUCT or merge is _MAP:
            fields, element = kind.fields, kind.element or UNTYPED
            for name, item in value.items():
                inner = fields.get(name, element)
                children["f:" + name] = whole(inner, item) if item and inner.merge is not _LEAF else LEAF_NODE
    elif isinstance(value, list) and (merge is _KEYED or merge is _SET):
        for item in value:
            children[element_of(kind, item)] = whole(kind.item, item)
    return make_node(True, children) or LEAF_NODE


def deduced(kind: FieldType, value: object) -> FieldType:
    """Return the type, or for an untyped one what the value makes of it: a map of untyped values, or a leaf."""
    if kind.merge is not _UNTYPED:
        return kind
    return _UNTYPED_MAP if isinstance(value, dict) else LEAF


_UNTYPED_MAP = FieldType(Merge.MAP)
_UNTYPED_MAP.element = UNTYPED


def _compare_entries(
    kind: FieldType, old: dict[str, object], new: dict[str, object], out: tuple[Node, Node, Node]
) -> None:
    for name, item in new.items():
        before = old.get(name, _ABSENT)
        if before is not item:
            _compare_child("f:" + name, kind.child(name), before, item, out)
    for name, item in old.items():
        if name not in new:
            out[2]["f:" + name] = whole(kind.child(name), item)


def _compare_child(element: str, kind: FieldType, old: object, new: object, out: tuple[Node, Node, Node]) -> None:
    if old is _ABSENT:
        out[0][element] = whole(kind, new)
        return
    if old == new and type(old) is type(new):
        return
    if kind.merge is _LEAF:
        out[1][element] = LEAF_NODE
        return
    kind = deduced(kind, new if new is not None else old)
    below: tuple[Node, Node, Node] = ({}, {}, {})
    if kind.merge in (Merge.STRUCT, Merge.MAP) and (old or new):
        _compare_entries(kind, _mapping(old), _mapping(new), below)
    elif kind.merge in (Merge.SET, Merge.KEYED_LIST) and (old or new):
        _compare_items(kind, _sequence(old), _sequence(new), below)
    else:
        out[1][element] = LEAF_NODE
        return
    for target, found in zip(out, below, strict=True):
        if found:
            target[element] = found


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _sequence(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _compare_items(kind: FieldType, old: list[object], new: list[object], out: tuple[Node, Node, Node]) -> None:
    before, after = _by_element(kind, old), _by_element(kind, new)
    for element, items in after.items():
        earlier = before.get(element, [])
        if len(items) > 1 or len(earlier) > 1:
            # Repeated items have no identity of their own; they count as one value.
            if not earlier:
                out[0][element] = LEAF_NODE
            elif items != earlier:
                out[1][element] = LEAF_NODE
        else:
            _compare_child(element, kind.item, earlier[0] if earlier else _ABSENT, items[0], out)
    for element, items in before.items():
        if element not in after:
            out[2][element] = whole(kind.item, items[0])


def _by_element(kind: FieldType, items: list[object]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for item in items:
        found.setdefault(element_of(kind, item), []).append(item)
    return found


def fields_of(kind: FieldType, value: object) -> Node:
    """Return the set of fields that a document names: leaves, empty maps and items, but not the maps around them."""
    kind = deduced(kind, value)
    children: Node = {}
    if isinstance(value, dict) and kind.merge in (Merge.STRUCT, Merge.MAP):
        for name, item in value.items():
            inner = deduced(kind.child(name), item)
            leaf = inner.merge is Merge.LEAF or item is None or item == {}
            node = make_node(leaf or name not in kind.fields, fields_of(inner, item))
            if node is not None:
                children["f:" + name] = node
    elif isinstance(value, list) and kind.merge in (Merge.SET, Merge.KEYED_LIST):
        for item in value:
            children[element_of(kind, item)] = make_node(True, fields_of(kind.item, item)) or LEAF_NODE
    return children
