"""The syntax tree of an expression. Every node has its source offset, for error messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec


class Literal(msgspec.Struct, frozen=True):
    """A constant: null, bool, int, `Uint`, float, text or bytes."""

    value: object
    at: int


class Ident(msgspec.Struct, frozen=True):
    """A name."""

    name: str
    at: int


class Select(msgspec.Struct, frozen=True):
    """A field of a value. `test`: whether it is a presence test (``has``); `optional`: ``.?``."""

    operand: Node
    field: str
    at: int
    test: bool = False
    optional: bool = False


class Call(msgspec.Struct, frozen=True):
    """A call of a function or operator; `target` is the receiver of a member function."""

    function: str
    target: Node | None
    args: tuple[Node, ...]
    at: int


class ListNode(msgspec.Struct, frozen=True):
    """A list; `optional` has the positions of optional elements."""

    items: tuple[Node, ...]
    at: int
    optional: frozenset[int] = frozenset()


class MapNode(msgspec.Struct, frozen=True):
    """A map: key, value, and whether the entry is optional."""

    entries: tuple[tuple[Node, Node, bool], ...]
    at: int


class MessageNode(msgspec.Struct, frozen=True):
    """An object of a type: field, value, whether the field is optional, and its position."""

    type_name: str
    entries: tuple[tuple[str, Node, bool, int], ...]
    at: int


class Fold(msgspec.Struct, frozen=True):
    """A macro over a range: ``all``, ``exists``, ``existsOne``, ``map`` (with an optional condition), ``filter``.

    Attributes:
        variables: one name, or two (index or key, and value).
    """

    kind: str
    range: Node
    variables: tuple[str, ...]
    condition: Node | None
    transform: Node | None
    at: int


@dataclass(frozen=True, slots=True)
class Bind:
    """``cel.bind(name, value, body)``, and ``optMap``, ``optFlatMap`` (`kind`)."""

    kind: str
    name: str
    value: Node
    body: Node
    at: int = field(default=0)


Node: TypeAlias = "Literal | Ident | Select | Call | ListNode | MapNode | MessageNode | Fold | Bind"


def qualified_name(node: Node) -> str | None:
    """Return ``a.b.c`` if an expression is a plain chain of names, else None."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None
