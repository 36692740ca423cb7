"""Comparison of two objects of a type: the sets of added, modified and removed fields.

The module also computes the field set of one object.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from bayplan.apiserver.fields.field_set import LEAF_NODE, Node, make_node
from bayplan.apiserver.fields.field_type import LEAF, UNTYPED, FieldType, Merge
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.plain_data import same_json

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


class KeylessItemError(Exception):
    """An item of a keyed list has no key. Upstream's field manager cannot read such objects."""


class Comparison(NamedTuple):
    """The field sets that the newer object adds, modifies and removes."""

    added: Node
    modified: Node
    removed: Node


def compare(kind: FieldType, old: dict[str, object], new: dict[str, object]) -> Comparison:
    """Return the fields that differ between two objects of a type."""
    added: Node = {}
    modified: Node = {}
    removed: Node = {}
    _compare_entries(kind, old, new, (added, modified, removed))
    return Comparison(added, modified, removed)


def lists_with_empties(kind: FieldType, value: dict[str, object]) -> Node:
    """Return the atomic fields with a list in which a list or map was sent empty.

    Upstream compares the items of such a list as Go values, in which an empty list differs from the null that it stores.
    """
    found: Node = {}
    for name, item in value.items():
        inner = kind.child(name)
        below: Node = {}
        if inner.merge is _LEAF:
            if _has_empty_items(item):
                found["f:" + name] = LEAF_NODE
        elif isinstance(item, dict):
            below = lists_with_empties(inner, item)
        elif isinstance(item, list) and inner.merge is _KEYED:
            for each in item:
                node = lists_with_empties(inner.item, each) if isinstance(each, dict) else {}
                if node:
                    below[element_of(inner, each)] = node
        if below:
            found["f:" + name] = below
    return found


def _has_empty_items(value: object) -> bool:
    if isinstance(value, list):
        return has_empties(value)
    return isinstance(value, dict) and any(_has_empty_items(each) for each in value.values())


def has_empties(value: object) -> bool:
    """Return whether a decoded value contains a list or map that was sent empty, has no default, and is not in Go's output."""
    if isinstance(value, dict):
        if isinstance(value, Emptied) and value.empties.keys() - value.keys():
            return True
        for each in value.values():
            if has_empties(each):
                return True
    elif isinstance(value, list):
        for each in value:
            if has_empties(each):
                return True
    return False


def element_of(kind: FieldType, item: object) -> str:
    """Return the path element of an item in a keyed list or set, such as ``k:{"name":"c"}`` or ``v:"x"``."""
    if kind.merge is _KEYED and isinstance(item, dict):
        if len(kind.keys) == 1 and kind.keys[0] in item:
            (key,) = kind.keys
            return 'k:{"' + key + '":' + _encode(item[key]).decode() + "}"
        keys = {}
        for key in kind.keys:
            value = item.get(key, kind.key_defaults.get(key, _ABSENT))
            if value is not _ABSENT:
                keys[key] = value
        if not keys:
            raise KeylessItemError
        return "k:" + _encode(keys).decode()
    return "v:" + _encode(item).decode()


def whole(kind: FieldType, value: object) -> Node:
    """Return the field set of a value: all leaves, and all containers including the value itself."""
    children = _inside(kind, value, {".": LEAF_NODE})
    return children if len(children) > 1 else LEAF_NODE


def _inside(kind: FieldType, value: object, children: Node) -> Node:
    """Add the field set of everything inside a value to `children`, and return it."""
    merge = kind.merge
    if merge is _LEAF or not value:
        return children
    if merge is _UNTYPED:
        kind = deduced(kind, value)
        merge = kind.merge
    if isinstance(value, dict):
        if merge is _STRUCT or merge is _MAP:
            fields, element = kind.fields, kind.element or UNTYPED
            for name, item in value.items():
                inner = fields.get(name, element)
                children["f:" + name] = whole(inner, item) if item and inner.merge is not _LEAF else LEAF_NODE
    elif isinstance(value, list) and (merge is _KEYED or merge is _SET):
        inner = kind.item
        for item in value:
            element_name = element_of(kind, item)
            # Repeated items are compared as one value, so their fields are not tracked.
            children[element_name] = LEAF_NODE if element_name in children else whole(inner, item)
    return children


def deduced(kind: FieldType, value: object) -> FieldType:
    """Return the type; for the untyped type, return a map of untyped values or a leaf, depending on the value."""
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
    # Only values without a Go type can contain a boolean in place of an equal number.
    is_free = kind.json_type or kind.merge is _UNTYPED
    if old == new and (type(old) is type(new) or isinstance(old, dict)) and (not is_free or same_json(old, new)):
        return
    if kind.merge is _LEAF:
        out[1][element] = LEAF_NODE
        return
    if (
        kind.merge is _UNTYPED
        and isinstance(old, dict) != isinstance(new, dict)
        and old is not None
        and new is not None
    ):
        # A map replaces another value, or the reverse: the value is modified, and the map's fields are added or removed.
        out[1][element] = LEAF_NODE
        inside = _inside(_UNTYPED_MAP, new if isinstance(new, dict) else old, {})
        if inside:
            out[0 if isinstance(new, dict) else 2][element] = inside
        return
    kind = deduced(kind, new if new is not None else old)
    below: tuple[Node, Node, Node] = ({}, {}, {})
    if not old and new and kind.merge is not _LEAF:
        _inside(kind, new, below[0])
    elif kind.merge in (Merge.STRUCT, Merge.MAP) and (old or new):
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
    inner = kind.item
    before, after = _by_element(kind, old), _by_element(kind, new)
    for element, item in after.items():
        earlier = before.get(element, _ABSENT)
        if isinstance(item, _Repeated) and isinstance(earlier, _Repeated):
            # Repeated items cannot be distinguished, so compare all of them as one value.
            if item != earlier:
                out[1][element] = LEAF_NODE
        elif isinstance(item, _Repeated):
            out[0][element] = LEAF_NODE
            if earlier is not _ABSENT:
                out[2][element] = whole(inner, earlier)
        elif isinstance(earlier, _Repeated):
            out[0][element], out[2][element] = whole(inner, item), LEAF_NODE
        elif earlier is not item:
            _compare_child(element, inner, earlier, item, out)
    for element, item in before.items():
        if element not in after:
            out[2][element] = LEAF_NODE if isinstance(item, _Repeated) else whole(inner, item)


class _Repeated(list[object]):
    """The items of a list that have the same path element."""


def _by_element(kind: FieldType, items: list[object]) -> dict[str, object]:
    """Return the items by path element; several items with the same element become a `_Repeated`."""
    elements = [element_of(kind, item) for item in items]
    found: dict[str, object] = dict(zip(elements, items, strict=True))
    if len(found) == len(items):
        return found
    repeated: dict[str, list[object]] = {}
    for element, item in zip(elements, items, strict=True):
        repeated.setdefault(element, []).append(item)
    return {element: each[0] if len(each) == 1 else _Repeated(each) for element, each in repeated.items()}


def fields_of(kind: FieldType, value: object) -> Node:
    """Return the field set of an object: leaves, empty maps and list items, but not the maps that contain them."""
    kind = deduced(kind, value)
    merge = kind.merge
    children: Node = {}
    if isinstance(value, dict):
        if merge is _STRUCT or merge is _MAP:
            fields, element = kind.fields, kind.element or UNTYPED
            for name, item in value.items():
                field = fields.get(name)
                inner = element if field is None else field
                if inner.merge is _LEAF:
                    children["f:" + name] = LEAF_NODE
                    continue
                inner = deduced(inner, item)
                leaf = inner.merge is _LEAF or item is None or item == {}
                node = make_node(leaf or field is None, fields_of(inner, item))
                if node is not None:
                    children["f:" + name] = node
    elif isinstance(value, list) and (merge is _KEYED or merge is _SET):
        inner = kind.item
        for item in value:
            children[element_of(kind, item)] = make_node(True, fields_of(inner, item)) or LEAF_NODE
    return children
