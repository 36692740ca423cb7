"""Field sets in the format of FieldsV1, and the operations that field ownership needs.

A node is a dict from path element to node: ``f:name`` is a field, ``k:{"name":"c"}`` an item identified by its keys,
``v:"x"`` an item identified by its value. A node that is empty or contains ``.`` is itself a member of the set. Nodes
are immutable once they are part of a set, and operations share nodes where possible.
"""

from __future__ import annotations

from typing import TypeAlias

Node: TypeAlias = "dict[str, Node]"

LEAF_NODE: Node = {}


def is_member(node: Node) -> bool:
    """Return whether a node is itself a member of the set."""
    return not node or "." in node


def make_node(member: bool, children: Node) -> Node | None:
    """Return a node with these children, or None if it has none and is not a member."""
    if not children:
        return LEAF_NODE if member else None
    return {".": LEAF_NODE, **children} if member else children


def children_of(node: Node) -> Node:
    """Return the children of a node without ``.``, which marks the node as a member."""
    return {name: child for name, child in node.items() if name != "."} if "." in node else node


def union(left: Node, right: Node) -> Node:
    """Return the union of two sets, whose roots do not count as members."""
    if not left or not right:
        return left or right
    out = dict(left)
    for name, node in right.items():
        if name == ".":
            continue
        other = left.get(name)
        out[name] = node if other is None else _union_nodes(other, node)
    return out


def _union_nodes(left: Node, right: Node) -> Node:
    children = union(children_of(left), children_of(right))
    return make_node(is_member(left) or is_member(right), children) or LEAF_NODE


def difference(left: Node, right: Node) -> Node:
    """Return the members of the left set that are not in the right set. The roots do not count as members."""
    if not right and "." not in left:
        return left
    out: Node = {}
    for name, node in left.items():
        if name == ".":
            continue
        other = right.get(name)
        if other is None:
            out[name] = node
        elif not other:
            left_over = children_of(node)
            if left_over:
                out[name] = left_over
        elif not node:
            if "." not in other:
                out[name] = LEAF_NODE
        elif node is not other:
            kept = make_node("." in node and "." not in other, difference(node, other))
            if kept is not None:
                out[name] = kept
    return out


def without(left: Node, right: Node) -> Node:
    """Return the left set without the members of the right set and everything below them."""
    if not right:
        return left
    out: Node = {}
    for name, node in left.items():
        other = right.get(name)
        if other is None:
            out[name] = node
        elif not is_member(other):
            kept = make_node(is_member(node), without(children_of(node), other))
            if kept is not None:
                out[name] = kept
    return out


def intersection(left: Node, right: Node) -> Node:
    """Return the members that both sets contain."""
    if not left or not right:
        return {}
    out: Node = {}
    for name, node in left.items():
        other = right.get(name)
        if other is None or name == ".":
            continue
        kept = make_node(is_member(node) and is_member(other), intersection(children_of(node), children_of(other)))
        if kept is not None:
            out[name] = kept
    return out


def paths(node: Node, prefix: str = "") -> list[str]:
    """Return the members as paths in the form used in conflicts, e.g. ``.spec.containers[name="c"].image``.

    The order is upstream's: the sorted members of a level, then the members below each of them.
    """
    names = sorted(children_of(node))
    found = [prefix + _print(name) for name in names if is_member(node[name])]
    for name in names:
        if node[name]:
            found += paths(node[name], prefix + _print(name))
    return found


def _print(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        inner = rest[1:-1]
        return "[" + ",".join(part.replace('"', "", 2).replace(":", "=", 1) for part in _split_keys(inner)) + "]"
    return f"[={rest}]" if kind == "v" else f"[{rest}]"


def _split_keys(text: str) -> list[str]:
    parts, depth, start, quoted = [], 0, 0, False
    for index, letter in enumerate(text):
        if letter == '"' and (index == 0 or text[index - 1] != "\\"):
            quoted = not quoted
        elif letter == "," and not quoted and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
