"""Which types know which operators, and what the functions of lists do that need an order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.plugins.dynamic_resources.cel import times
from bayplan.plugins.dynamic_resources.cel.meter import spend_work
from bayplan.plugins.dynamic_resources.cel.problems import RunProblem
from bayplan.plugins.dynamic_resources.cel.values import NONE, Optional


def has_trait(name: str, args: list[object]) -> bool:
    """Say whether values of the first argument's type know an operator at all."""
    kinds = _TRAITS.get(name)
    return kinds is None or (isinstance(args[0], kinds) and (bool in kinds or not isinstance(args[0], bool)))


_NUMBERS = (int, float)
_TIMES = (times.Timestamp, times.Duration)
_TRAITS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), (bool, *_NUMBERS, str, bytes, *_TIMES)),
    "_+_": (*_NUMBERS, str, bytes, list, *_TIMES),
    "_-_": (*_NUMBERS, *_TIMES),
    **dict.fromkeys(("_*_", "_/_"), _NUMBERS),
    "_%_": (int,),
}


def _sorted(items: object, keys: object) -> list[object]:
    """Return items in the order of their keys, which are all of one type that has an order."""
    if not isinstance(items, list) or not isinstance(keys, list):
        raise TypeError
    spend_work(len(items))
    if any(type(key) is not type(keys[0]) for key in keys):
        raise RunProblem("list elements must have the same type")
    if keys and not has_trait("_<_", keys[:1]):
        raise RunProblem("list elements must be comparable")
    order = sorted(range(len(items)), key=lambda place: keys[place])
    return [items[place] for place in order]


def _flatten(items: object, depth: object = 1) -> list[object]:
    if not isinstance(items, list) or not isinstance(depth, int) or isinstance(depth, bool):
        raise TypeError
    if depth < 0:
        raise RunProblem("level must be non-negative")
    spend_work(len(items))
    found: list[object] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            found += _flatten(item, depth - 1)
        else:
            found.append(item)
    return found


def _end(place: int) -> Callable[[object], Optional]:
    def end(items: object) -> Optional:
        if not isinstance(items, list):
            raise TypeError
        return Optional(items[place], True) if items else NONE

    return end


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "sort": lambda items: _sorted(items, items),
    "@sorted": _sorted,
    "flatten": _flatten,
    "first": _end(0),
    "last": _end(-1),
}
