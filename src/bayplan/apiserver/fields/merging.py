"""Structured merge: merge an apply configuration into an object, and remove fields from an object."""

from __future__ import annotations

import msgspec

from bayplan.apiserver.fields.compare import deduced, element_of
from bayplan.apiserver.fields.field_set import LEAF_NODE, Node, children_of, is_member, make_node
from bayplan.apiserver.fields.field_type import UNTYPED, FieldType, Merge

_encode = msgspec.json.encode
_LEAF, _STRUCT, _MAP = Merge.LEAF, Merge.STRUCT, Merge.MAP


def merge(kind: FieldType, live: object, config: object) -> object:
    """Return a new value with a configuration merged into the current one.

    Lists in the configuration have no duplicates.
    """
    if live is None:
        return config
    kind = deduced(kind, config if config is not None else live)
    if kind.merge is _LEAF:
        return config
    if (kind.merge is _STRUCT or kind.merge is _MAP) and (live or config):
        ours = live if isinstance(live, dict) else {}
        theirs = config if isinstance(config, dict) else {}
        out = dict(ours)
        fields, element = kind.fields, kind.element or UNTYPED
        for name, item in theirs.items():
            inner = fields.get(name, element)
            out[name] = item if inner.merge is _LEAF else merge(inner, ours.get(name), item)
        return out
    if kind.merge in (Merge.SET, Merge.KEYED_LIST) and (live or config):
        return _merge_items(kind, live if isinstance(live, list) else [], config if isinstance(config, list) else [])
    return config


def _merge_items(kind: FieldType, live: list[object], config: list[object]) -> list[object]:
    if not live:
        return config
    if _encode(live) == _encode(config):
        # The same list is applied again: this takes 0.48 s instead of 0.83 s for 1.5 MB. Encode first, because Python
        # treats 1 and True as equal.
        return live
    left = [(element_of(kind, item), item) for item in live]
    right = [(element_of(kind, item), item) for item in config]
    ours, theirs = dict(left), dict(right)
    shared = [element for element, _ in right if element in ours]
    wanted = 0
    merged: set[str] = set()
    out: list[object] = []
    at = to = 0
    # The result has the order of the configuration; other items stay where they are relative to their neighbors.
    while at < len(left) or to < len(right):
        if at < len(left):
            element, item = left[at]
            if to < len(right) and element == right[to][0]:
                merged.add(element)
                out.append(merge(kind.item, item, right[to][1]))
                at, to, wanted = at + 1, to + 1, wanted + 1
                continue
            if to < len(right) and element in theirs and wanted < len(shared) and shared[wanted] != element:
                at += 1
                continue
            if element not in theirs:
                out.append(item)
                at += 1
                continue
            if element in merged:
                at += 1
                continue
        if to < len(right):
            element, item = right[to]
            merged.add(element)
            out.append(merge(kind.item, ours.get(element), item))
            to += 1
            if wanted < len(shared) and shared[wanted] == element:
                wanted += 1
    return out


def remove(kind: FieldType, value: object, fields: Node) -> object:
    """Return a value without the members of a set, or None if nothing remains."""
    kind = deduced(kind, value)
    if not value:
        return None
    if isinstance(value, dict) and kind.merge in (Merge.STRUCT, Merge.MAP):
        left: dict[str, object] = {}
        for name, item in value.items():
            node = fields.get("f:" + name)
            if node is None:
                left[name] = item
            elif not is_member(node):
                left[name] = remove(kind.child(name), item, node)
        return left or None
    if isinstance(value, list) and kind.merge in (Merge.SET, Merge.KEYED_LIST):
        kept: list[object] = []
        for item in value:
            node = fields.get(element_of(kind, item))
            if node is None:
                kept.append(item)
            elif not is_member(node):
                kept.append(remove(kind.item, item, node))
        return kept or None
    return None if kind.merge is Merge.LEAF and kind.is_list else value


def with_named_fields(kind: FieldType, fields: Node) -> Node:
    """Return the set, with every struct field that contains members added as a member."""
    out: Node = {}
    for name, node in children_of(fields).items():
        field = name[2:]
        inner = kind.child(field) if name.startswith("f:") else kind.item
        member = is_member(node) or (name.startswith("f:") and kind.merge is Merge.STRUCT and field in kind.fields)
        out[name] = make_node(member, with_named_fields(inner, node)) or LEAF_NODE
    return out


def with_whole_values(kind: FieldType, fields: Node) -> Node:
    """Return the set, with lists and maps that are replaced as a whole as members, instead of the fields below them.

    Earlier releases merged some of them field by field, so sets in objects from older clusters name these fields.
    """
    out: Node = {}
    for name, node in fields.items():
        inner = kind.child(name[2:]) if name.startswith("f:") else kind.item
        if not node or inner.merge is Merge.UNTYPED:
            out[name] = node
        elif inner.merge is Merge.LEAF:
            out[name] = LEAF_NODE if inner.is_list or inner.is_map else node
        else:
            out[name] = with_whole_values(inner, node)
    return out
