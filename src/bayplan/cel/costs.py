"""Costs of function calls during evaluation, as in cel-go and Kubernetes' libraries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from bayplan.cel import library_lists
from bayplan.cel.values import CelMap

TRAVERSAL = 0.1
"""Cost of reading one character."""
REGEXP_TRAVERSAL = 0.25
"""Cost of one character in a regular expression."""


def _first(values: list[object]) -> int:
    return math.ceil(_extent(values[0]) * TRAVERSAL)


def _smaller(values: list[object]) -> int:
    return math.ceil(min(_extent(values[0]), _extent(values[1])) * TRAVERSAL)


def _joined(values: list[object]) -> int:
    if not isinstance(values[0], str | bytes):
        return 1
    return math.ceil((_extent(values[0]) + _extent(values[1])) * TRAVERSAL)


def _searched(values: list[object]) -> int:
    return math.ceil(_extent(values[0]) * TRAVERSAL) * math.ceil(_extent(values[1]) * TRAVERSAL)


def _matched(values: list[object]) -> int:
    return math.ceil((1 + _extent(values[0])) * TRAVERSAL) * math.ceil(_extent(values[1]) * REGEXP_TRAVERSAL)


def _rebuilt(values: list[object]) -> int:
    return math.ceil(_extent(values[0]) * 2 * TRAVERSAL)


def _join(values: list[object]) -> int:
    items = values[0]
    if not isinstance(items, list):
        return 1
    between = _extent(values[1]) * max(0, len(items) - 1) if len(values) > 1 else 0
    return math.ceil((sum(map(_extent, items)) + between) * 2 * TRAVERSAL)


COSTS: Mapping[str, Callable[[list[object]], int]] = {
    **library_lists.COSTS,
    **dict.fromkeys(("startsWith", "endsWith", "bytes", "lowerAscii", "upperAscii", "substring", "trim"), _first),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _first),
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _smaller),
    **dict.fromkeys(("matches", "find", "findAll"), _matched),
    **dict.fromkeys(("replace", "split"), _rebuilt),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda values: _traversal(values[0])),
    "_+_": _joined,
    "contains": _searched,
    "join": _join,
    "@in": lambda values: _extent(values[1]) if isinstance(values[1], list) else 1,
    "includes": lambda values: _extent(values[0]) if isinstance(values[0], list) else 1,
}
"""By function: computes the cost of a call from the arguments. Calls of all other functions cost 1."""


def _traversal(value: object) -> int:
    """Return the cost of reading a value and everything nested in it."""
    if isinstance(value, str | bytes):
        return int((len(value.encode("utf-8", "replace")) if isinstance(value, str) else len(value)) * TRAVERSAL)
    if isinstance(value, list):
        return sum(map(_traversal, value))
    return 1


def _extent(value: object) -> int:
    if isinstance(value, str | bytes | list):
        return len(value)
    return len(value.entries) if isinstance(value, CelMap) else 1
