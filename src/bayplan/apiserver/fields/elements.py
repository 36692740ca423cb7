"""Path elements of field sets that clients send, in the form in which upstream writes them."""

from __future__ import annotations

import json
import re
from math import isfinite

from bayplan.apiserver.fields.field_set import LEAF_NODE, Node, children_of, is_member, make_node
from bayplan.base.go_text.json import json_text

_MAX_DIGITS = 20
_INDEX = re.compile(r"[+-]?[0-9]+")


def element_text(element: str) -> str:
    """Return a path element as upstream writes it, or an empty text if its type is unknown.

    Raises:
        ValueError: the element is malformed.
        RecursionError: its value is nested too deeply.
    """
    kind, colon, rest = element.partition(":")
    if element == ".":
        return element
    if len(kind) != 1 or not colon:
        raise ValueError(element)
    if kind == "i":
        if not _INDEX.fullmatch(rest) or not -(2**63) <= int(rest) < 2**63:
            raise ValueError(element)
        return f"i:{int(rest)}"
    if kind == "v":
        return f"v:{json_text(_decoded(rest))}"
    if kind == "k":
        keys = _decoded(rest)
        if not isinstance(keys, dict | None):
            raise ValueError(element)
        return f"k:{json_text(dict(sorted((keys or {}).items())))}"
    return element if kind == "f" else ""


def _decoded(text: str) -> object:
    return json.loads(text, parse_constant=_refused, parse_float=_finite, parse_int=_whole)


def _whole(text: str) -> int | float:
    """Return a whole number; as in Go, a float beyond 64 bits."""
    number = int(text) if len(text) <= _MAX_DIGITS else None
    return number if number is not None and -(2**63) <= number < 2**63 else _finite(text)


def _refused(text: str) -> object:
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def checked_node(value: object, name: str = "") -> Node:
    """Return a node of a field set.

    As upstream, null is an empty node, the value of ``.`` is ignored, and elements of unknown types are dropped.

    Raises:
        TypeError: the value is not an object.
        ValueError: the value of an element is malformed.
    """
    if value is None or name == ".":
        return LEAF_NODE
    if not isinstance(value, dict):
        raise TypeError(value)
    out: Node = {}
    for sent, child in value.items():
        key = element_text(sent)
        if not key:
            continue
        node = checked_node(child, key)
        other = out.get(key)
        if other is not None:
            # Another text of the same element, as `i:1` and `i:01`. As in upstream, the last children win.
            children = children_of(node) or children_of(other)
            node = make_node(is_member(other) or is_member(node), children) or LEAF_NODE
        out[key] = node
    return out
