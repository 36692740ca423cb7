"""JSON paths of printer columns: the first value that a path finds in an object.

Source: the package k8s.io/client-go/util/jsonpath. The values of an object are visited by key; in upstream, the order is
that of a Go map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

MISSING = object()
"""Stands for the value of a path that finds nothing."""
_MAX_PATHS = 1000
_STEP = re.compile(
    r"""(?P<everywhere>\.(?=\.))
    |\.?(?P<field>(?:\\.|[^.\[\]()'"?@*\\])+)
    |\['(?P<quoted>[^']*)'\]
    |\[(?P<range>-?\d*(?::-?\d*){0,2}|-?\d+(?:,-?\d+)+)\]
    |(?P<all>\[\*\]|\.\*)
    |\[\?\(\s*@(?P<left>(?:[^'"=!<>()\s]|\['[^']*'\])*)\s*
     (?:(?P<compare>==|!=|<=|>=|<|>)\s*(?P<right>'[^']*'|"[^"]*"|[^)\s]+)\s*)?\)\]""",
    re.VERBOSE,
)
_DOT = re.compile(r"(?<!\\)\.")


class _Field(NamedTuple):
    name: str


class _Items(NamedTuple):
    ranges: tuple[slice, ...]


class _All(NamedTuple):
    """All values of a list or object; with `is_deep`, also the value itself and everything below it."""

    is_deep: bool


class _Filter(NamedTuple):
    """A condition on list items: a path within the item exists, or its value compares with a constant."""

    left: tuple[_Step, ...]
    compare: str
    right: object


_Step = _Field | _Items | _All | _Filter


def first_value(path: str, document: object) -> object:
    """Return the first value that a path finds, or `MISSING`."""
    steps = _steps(path)
    try:
        found = _find(steps, document) if steps is not None else []
    except TypeError:  # A step that does not fit the value, or a comparison of different types.
        return MISSING
    return found[0] if found else MISSING


@lru_cache(_MAX_PATHS)
def _steps(path: str) -> tuple[_Step, ...] | None:
    """Return the steps of a path, or None if the path is malformed."""
    steps: list[_Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        found = _parsed(match) if match is not None else None
        if match is None or found is None:
            return None
        steps += found
        at = match.end()
    return tuple(steps)


def _parsed(match: re.Match[str]) -> list[_Step] | None:
    if match["everywhere"] or match["all"]:
        return [_All(bool(match["everywhere"]))]
    if match["range"] is not None:
        return [_Items(tuple(_range(each) for each in match["range"].split(",")))] if match["range"] else None
    if match["left"] is None:
        names = [match["field"]] if match["field"] is not None else _DOT.split(match["quoted"])
        return [_Field(re.sub(r"\\(.)", r"\1", name)) for name in names]
    left, right = _steps(match["left"]), _constant(match["right"] or "")
    return None if left is None or right is MISSING else [_Filter(left, match["compare"] or "", right)]


def _range(text: str) -> slice:
    parts = [int(each) if each else None for each in text.split(":")]
    if len(parts) > 1:
        return slice(*parts)
    index = parts[0] or 0
    return slice(index, index + 1 or None)


def _constant(text: str) -> object:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false", ""):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return MISSING


def _find(steps: tuple[_Step, ...], value: object) -> list[object]:
    found = [value]
    for step in steps:
        found = [each for one in found for each in _below(step, one)]
    return found


def _below(step: _Step, value: object) -> list[object]:
    """Return what a step finds in a value.

    Raises:
        TypeError: the step does not fit the value.
    """
    if value is None:
        return []
    if isinstance(step, _Field):
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if isinstance(step, _All):
        return list(_everything(value)) if step.is_deep else _values(value)
    if not isinstance(value, list):
        raise TypeError(step)
    if isinstance(step, _Items):
        return [item for each in step.ranges for item in value[each]]
    return [item for item in value if _passes(step, item)]


def _values(value: object) -> list[object]:
    if isinstance(value, dict):
        return [value[name] for name in sorted(value)]
    if isinstance(value, list):
        return value
    raise TypeError(value)


def _everything(value: object) -> Iterator[object]:
    """Yield all lists and objects in a value, including itself, from the outside."""
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, dict | list) and each:
            yield each
            rest += reversed(_values(each))


def _passes(condition: _Filter, item: object) -> bool:
    found = _find(condition.left, item)
    if not found or not condition.compare:
        return bool(found)
    left, right = found[0], condition.right
    if len(found) > 1 or type(left) is not type(right):
        raise TypeError(condition)
    if condition.compare in ("==", "!="):
        return (left == right) is (condition.compare == "==")
    if isinstance(left, bool) or not isinstance(left, int | float | str):
        raise TypeError(condition)
    is_less, is_greater = left < right, left > right  # type: ignore[operator]
    return {"<": is_less, ">": is_greater, "<=": not is_greater, ">=": not is_less}[condition.compare]
