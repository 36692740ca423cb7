"""Functions of cel-go's list library that Kubernetes' library lacks, such as flatten and sort, and ``includes``.

Source: https://github.com/google/cel-go/blob/v0.26.0/ext/lists.go, version 3 of the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cmp_to_key

from bayplan.cel.meter import LETTERS_PER_WORK, spend_copy, spend_work
from bayplan.cel.problems import RunProblem
from bayplan.cel.values import NONE, CelMap, Optional, TypeValue, compare, equal, type_name

SORT_BY = "@sortByAssociatedKeys"
MAX_RANGE = 1_000_000
MAX_DEPTH = 250
"""Maximum nesting depth for `flatten`. cel-go allows more, but the parser limits how deeply an expression can nest
lists.
"""
MAX_INCLUDED = 64
"""Maximum number of values of a device attribute."""
_CREATION_COST, _CALL_COST = 10, 1
_STRING_FACTOR = 0.1


def _on_list(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that refuses receivers that are not lists."""

    def call(items: object, *args: object) -> object:
        if not isinstance(items, list):
            raise TypeError  # `library.call` converts this to an error message.
        return function(items, *args)

    return call


def _slice(items: list[object], start: int, end: int) -> list[object]:
    if start < 0 or end < 0:
        raise RunProblem(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise RunProblem(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise RunProblem(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _distinct(items: list[object]) -> list[object]:
    spend_work(len(items) * len(items) // 2)
    found: list[object] = []
    for item in items:
        if not any(equal(item, other) for other in found):
            found.append(item)
    return found


def _range(count: int) -> list[object]:
    length = max(0, min(count, MAX_RANGE))
    spend_work(length // LETTERS_PER_WORK)
    return [*range(length)]


def _flatten(items: list[object], depth: int = 1) -> list[object]:
    if depth < 0:
        raise RunProblem("level must be non-negative")
    spend_copy(items)
    found: list[object] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            found += _flatten(item, min(depth, MAX_DEPTH) - 1)
        else:
            found.append(item)
    return found


def _sort(items: list[object]) -> list[object]:
    return _sort_by(items, items)


def _sort_by(items: list[object], keys: list[object]) -> list[object]:
    """Return the items sorted by their keys.

    Items with equal keys keep their order, which cel-go does not guarantee.
    """
    if not keys:
        return items
    spend_work(len(items) * max(1, math.ceil(math.log2(len(items)))))
    if keys[0] is None or isinstance(keys[0], list | CelMap | Optional | TypeValue):
        raise RunProblem("list elements must be comparable")
    kind = type_name(keys[0])
    if any(type_name(key) != kind for key in keys):
        raise RunProblem("list elements must have the same type")

    def by_key(left: tuple[object, object], right: tuple[object, object]) -> int:
        return compare(left[0], right[0])

    return [item for _, item in sorted(zip(keys, items, strict=True), key=cmp_to_key(by_key))]


def _reverse(items: list[object]) -> list[object]:
    spend_copy(items)
    return items[::-1]


def _includes(target: object, item: object) -> bool:
    if isinstance(target, list):
        for place, other in enumerate(target):
            if place >= MAX_INCLUDED:
                raise RunProblem(f"'includes' function cannot be applied to lists longer than {MAX_INCLUDED} values")
            if equal(other, item):
                return True
        return False
    return equal(target, item)


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "distinct": _on_list(_distinct),
    "first": _on_list(lambda items: Optional(items[0], True) if items else NONE),
    "flatten": _on_list(_flatten),
    "includes": _includes,
    "last": _on_list(lambda items: Optional(items[-1], True) if items else NONE),
    "lists.range": _range,
    "reverse": _on_list(_reverse),
    "slice": _on_list(_slice),
    "sort": _on_list(_sort),
    SORT_BY: _on_list(_sort_by),
}


# --- costs ------------------------------------------------------------------------------------------------------------


def _allocating(factor: float, size: int) -> int:
    return int(size * factor) + _CREATION_COST + _CALL_COST


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 1


def _compared(values: object) -> int:
    if not isinstance(values, list) or not values:
        return _CREATION_COST + _CALL_COST
    factor = 2.0 + (_STRING_FACTOR if isinstance(values[0], str | bytes) else 0.0)
    return _allocating(factor, len(values) ** 2)


def _flattened(values: list[object]) -> int:
    depth = values[1] if len(values) == 2 else 1
    return _allocating(float(max(0, depth)) if isinstance(depth, int) else 1.0, _length(values[0]))


def _sliced(values: list[object]) -> int:
    start, end = values[1], values[2]
    return _allocating(1, max(0, end - start) if isinstance(start, int) and isinstance(end, int) else 0)


def _ranged(values: list[object]) -> int:
    return _allocating(1, max(0, values[0]) if isinstance(values[0], int) else 0)


COSTS: Mapping[str, Callable[[list[object]], int]] = {
    "distinct": lambda values: _compared(values[0]),
    "flatten": _flattened,
    "lists.range": _ranged,
    "reverse": lambda values: _allocating(1, _length(values[0])),
    "slice": _sliced,
    "sort": lambda values: _compared(values[0]),
    SORT_BY: lambda values: _compared(values[1]),
}
"""By function: computes the cost of a call from the arguments."""
