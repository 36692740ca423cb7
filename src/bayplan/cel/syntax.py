"""The syntax tree of an expression. Every node has its position in the source text (`at`), for error messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from bayplan.cel.declarations import Overload


class Literal(msgspec.Struct, frozen=True):
    """A constant: None, bool, int, `Uint`, float, str or bytes."""

    value: object
    at: int


class Ident(msgspec.Struct, frozen=True):
    """A name."""

    name: str
    at: int


class Select(msgspec.Struct, frozen=True):
    """A field of a value. `test`: the expression is ``has(...)``; `optional`: the operator is ``.?``."""

    operand: Node
    field: str
    at: int
    test: bool = False
    optional: bool = False


class Call(msgspec.Struct, frozen=True):
    """A call of a function or operator.

    Attributes:
        function: the name.
        target: the receiver of a member function, else None.
        args: the arguments.
        at: the position in the source text.
        overloads: the overloads that fit the types of the arguments. The checker adds them.
    """

    function: str
    target: Node | None
    args: tuple[Node, ...]
    at: int
    overloads: list[Overload] = msgspec.field(default_factory=list)


class ListNode(msgspec.Struct, frozen=True):
    """A list. `optional` contains the indexes of optional elements."""

    items: tuple[Node, ...]
    at: int
    optional: frozenset[int] = frozenset()


class MapNode(msgspec.Struct, frozen=True):
    """A map. Each entry has a key, a value, and whether it is optional."""

    entries: tuple[tuple[Node, Node, bool], ...]
    at: int


class MessageNode(msgspec.Struct, frozen=True):
    """The construction of an object. Each entry has a field name, a value, whether it is optional, and its position."""

    type_name: str
    entries: tuple[tuple[str, Node, bool, int], ...]
    at: int


class Fold(msgspec.Struct, frozen=True):
    """A macro over the elements of a list or map.

    Attributes:
        kind: ``all``, ``exists``, ``exists_one``, ``filter``, ``map``, ``transformList``, ``transformMap`` or
            ``transformMapEntry``.
        range: the list or map.
        variables: one name, or two for the index or key and the value.
        condition: the condition for each element; None for none.
        transform: the expression for the result; None for macros that return a bool, and for ``filter``.
    """

    kind: str
    range: Node
    variables: tuple[str, ...]
    condition: Node | None
    transform: Node | None
    at: int


@dataclass(frozen=True, slots=True)
class Bind:
    """``cel.bind(name, value, body)``, ``optMap`` or ``optFlatMap``, according to `kind`."""

    kind: str
    name: str
    value: Node
    body: Node
    at: int = field(default=0)


Node: TypeAlias = "Literal | Ident | Select | Call | ListNode | MapNode | MessageNode | Fold | Bind"


def qualified_name(node: Node) -> str | None:
    """Return ``a.b.c`` if an expression is a chain of names, else None."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test and not node.optional:
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None
