"""Estimated costs of functions that depend on the sizes of strings and lists.

Source: k8s.io/apiserver v0.36.3, pkg/cel/library/cost.go; github.com/google/cel-go v0.26.0, checker/cost.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from bayplan.cel.costs import REGEXP_TRAVERSAL, TRAVERSAL
from bayplan.cel.evaluator import LIST_COST, MESSAGE_COST
from bayplan.cel.syntax import Literal, Node
from bayplan.cel.types import BYTES, STRING, CelType

MOST = (1 << 64) - 1
"""Upper limit of sizes and costs; larger values are clamped to it."""
_CHECK_COST = 350_000
_NAMED_FORMAT_PATTERN = 128


class Size(NamedTuple):
    """The minimum and maximum size of a string, list or map."""

    least: int
    most: int


UNKNOWN = Size(0, MOST)


class Estimate(NamedTuple):
    """The maximum cost of a call, and the size of its result; None if unknown."""

    cost: int
    size: Size | None = None


class Sizes(Protocol):
    """The types and sizes of the parts of an expression."""

    def size(self, node: Node) -> Size:
        """Return the sizes of a node's value."""

    def element_size(self, target: Node) -> tuple[CelType, Size] | None:
        """Return the type and sizes of a list's elements, or None if the node is not a list."""


def times(left: int, right: int) -> int:
    """Return a product, at most `MOST`."""
    return min(left * right, MOST)


def plus(*costs: int) -> int:
    """Return a sum, at most `MOST`."""
    return min(sum(costs), MOST)


def scaled(size: int, factor: float) -> int:
    """Return a size multiplied by a factor, rounded up, at most `MOST`."""
    found = float(size) * factor
    return MOST if found >= 2.0**64 else math.ceil(found)


def union(left: Size, right: Size) -> Size:
    """Return the smallest range that contains both sizes."""
    return Size(min(left.least, right.least), max(left.most, right.most))


def added(left: Size, right: Size) -> Size:
    """Return the range of sums of the two sizes."""
    return Size(plus(left.least, right.least), plus(left.most, right.most))


def product(left: Size, right: Size) -> Size:
    """Return the range of products of the two sizes."""
    return Size(times(left.least, right.least), times(left.most, right.most))


def allocating(factor: float, size: int) -> Estimate:
    """Return the estimate for a function that creates a list of this size."""
    return Estimate(plus(1, LIST_COST, scaled(size, factor)), Size(size, size))


def number_of(node: Node, default: int) -> int:
    """Return the value of an integer constant, or the default for any other expression."""
    return node.value if isinstance(node, Literal) and isinstance(node.value, int) else default


_Text: TypeAlias = "Callable[[Sizes, Node | None, tuple[Node, ...], tuple[CelType, ...]], Estimate | None]"


def _read_argument(factor: float = TRAVERSAL, *, gives_size: bool = False) -> _Text:
    """Return the estimate of a function that reads its first argument once.

    Args:
        factor: the cost of one character.
        gives_size: whether the result has the size of the argument.
    """

    def estimate(of: Sizes, _target: Node | None, args: tuple[Node, ...], _kinds: object) -> Estimate | None:
        if not args:
            return None
        size = of.size(args[0])
        return Estimate(scaled(size.most, factor), size if gives_size else None)

    return estimate


def _read_target(of: Sizes, target: Node | None, _args: object, _kinds: object) -> Estimate | None:
    if target is None:
        return None
    size = of.size(target)
    return Estimate(scaled(size.most, TRAVERSAL), size)


def _formatted(of: Sizes, target: Node | None, _args: object, _kinds: object) -> Estimate | None:
    return None if target is None else Estimate(scaled(of.size(target).most, TRAVERSAL))


def _nominal(*_: object) -> Estimate:
    return Estimate(1)


def _authorized(*_: object) -> Estimate:
    return Estimate(_CHECK_COST)


def _compared(of: Sizes, target: Node | None, _args: object, _kinds: object) -> Estimate | None:
    """Return the estimate for a function that compares all elements of a list, or reads a string."""
    if target is None:
        return None
    size, element = of.size(target), of.element_size(target)
    if element is None:
        return Estimate(scaled(size.most, TRAVERSAL))
    each = plus(1, scaled(element[1].most, TRAVERSAL)) if element[0] in (STRING, BYTES) else 1
    return Estimate(times(size.most, each))


def _matched(of: Sizes, target: Node | None, args: tuple[Node, ...], _kinds: object) -> Estimate | None:
    if target is None or not args:
        return None
    text = scaled(plus(of.size(target).most, 1), TRAVERSAL)
    return Estimate(times(text, scaled(of.size(args[0]).most, REGEXP_TRAVERSAL)))


def _found(of: Sizes, target: Node | None, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> Estimate | None:
    found = _matched(of, target, args, kinds)
    return None if found is None or target is None else Estimate(found.cost, Size(0, of.size(target).most))


def _searched(of: Sizes, target: Node | None, args: tuple[Node, ...], _kinds: object) -> Estimate | None:
    if target is None or len(args) != 1:
        return None
    return Estimate(times(scaled(of.size(target).most, TRAVERSAL), scaled(of.size(args[0]).most, TRAVERSAL)))


def _replaced(of: Sizes, target: Node | None, args: tuple[Node, ...], _kinds: object) -> Estimate | None:
    if target is None or len(args) < 2:
        return None
    size, old, new = of.size(target), of.size(args[0]), of.size(args[1])
    if old.least == 0:
        most = plus(times(plus(size.most, 1), new.most), size.most)
    elif new.most <= old.least:
        most = size.most
    else:
        most = times(math.ceil(size.most / old.least), new.most)
    if old.most == 0:
        least = plus(times(plus(size.least, 1), new.least), size.least)
    elif old.most <= new.least:
        least = size.least
    else:
        least = times(math.ceil(size.least / old.most), new.least)
    return Estimate(scaled(size.most, 2 * TRAVERSAL), Size(least, most))


def _split(of: Sizes, target: Node | None, args: tuple[Node, ...], _kinds: object) -> Estimate | None:
    if target is None:
        return None
    size = of.size(target)
    most = number_of(args[1], size.most) if len(args) > 1 else size.most
    return Estimate(scaled(size.most, 2 * TRAVERSAL), Size(0, most % (MOST + 1)))


def _joined(of: Sizes, target: Node | None, args: tuple[Node, ...], _kinds: object) -> Estimate | None:
    if target is None:
        return None
    count, element = of.size(target), of.element_size(target)
    size = product(count, element[1]) if element is not None else Size(0, 0)
    if args:
        between = Size(max(0, count.least - 1), max(0, count.most - 1))
        size = added(size, product(of.size(args[0]), between))
    return Estimate(scaled(size.most, TRAVERSAL), size)


def _contains_address(of: Sizes, _target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> Estimate:
    text = scaled(of.size(args[0]).most, TRAVERSAL) if kinds[-1] == STRING else 0
    return Estimate(plus(scaled(32, TRAVERSAL), text))


def _contains_network(of: Sizes, target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> Estimate:
    inner = _contains_address(of, target, args, kinds)
    return Estimate(plus(inner.cost, scaled(16, TRAVERSAL), 1))


def _address(of: Sizes, target: Node | None, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> Estimate | None:
    return Estimate(1) if target is not None else _read_argument()(of, target, args, kinds)


def _as_bytes(of: Sizes, _target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> Estimate | None:
    if kinds[0] != STRING:
        return None
    size = of.size(args[0])
    return Estimate(scaled(size.most, TRAVERSAL), Size(size.least, min(size.most * 4, MOST)))


def _as_text(of: Sizes, _target: object, args: tuple[Node, ...], kinds: tuple[CelType, ...]) -> Estimate | None:
    if kinds[0] != BYTES:
        return None
    size = of.size(args[0])
    return Estimate(scaled(size.most, TRAVERSAL), Size(size.least // 4, size.most))


def _quoted(of: Sizes, _target: object, args: tuple[Node, ...], _kinds: object) -> Estimate:
    size = of.size(args[0])
    return Estimate(scaled(size.most, TRAVERSAL), Size(plus(size.least, 2), plus(times(size.most, 2), 2)))


def _validated(of: Sizes, _target: object, args: tuple[Node, ...], _kinds: object) -> Estimate:
    read = scaled(of.size(args[0]).most, TRAVERSAL)
    return Estimate(scaled(read, _NAMED_FORMAT_PATTERN * REGEXP_TRAVERSAL))


def _selected(of: Sizes, _target: object, args: tuple[Node, ...], _kinds: object) -> Estimate:
    size = of.size(args[0]).most
    requirements = scaled(scaled(size, 0.5), LIST_COST + MESSAGE_COST)
    return Estimate(plus(LIST_COST, scaled(size, TRAVERSAL), requirements))


FUNCTION_COSTS: Mapping[str, _Text] = {
    **dict.fromkeys(("startsWith", "endsWith"), _read_argument()),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _read_argument()),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _read_argument(gives_size=True)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read_target),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _compared),
    **dict.fromkeys(("find", "findAll"), _found),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selected),
    "ip.isCanonical": _read_argument(2 * TRAVERSAL),
    "format": _formatted,
    "matches": _matched,
    "contains": _searched,
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "ip": _address,
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "bytes": _as_bytes,
    "string": _as_text,
    "strings.quote": _quoted,
    "validate": _validated,
    "check": _authorized,
    "format.named": _nominal,
}
"""The estimates of functions whose cost depends on sizes, by name."""
