"""JSON paths of printer columns: the first value that a path finds in an object.

Source: the package k8s.io/client-go/util/jsonpath. The values of an object are visited by key; in upstream, the order is
that of a Go map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import isfinite
from typing import NamedTuple

MISSING = object()
"""Stands for the value of a path that finds nothing."""
_MAX_PATHS = 1000
_MAX_VALUES = 1_000_000
"""Maximum number of values that a step may find; steps below all values at any depth find combinations of them."""
_STEP = re.compile(
    r"""(?P<everywhere>\.\.)(?=[.\[\w\s$@]|$)
    |\.(?P<field>(?:\\.|[^\s.,\[\]$@{}\\])*)
    |(?P<below>(?<=\.\.)\w(?:\\.|[^\s.,\[\]$@{}\\])*)
    |\[\?\(\s*@?(?P<left>(?:[^'"=!<>()\s]|\['[^']*'\])*)\s*
     (?:(?P<compare>==|!=|<=|>=|<|>)\s*(?P<right>'[^']*'|"[^"]*"|[^)\s]+)\s*)?\)\]
    |\[(?P<array>[^\]\n]*)\]
    |(?P<ignored>[ @$])""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"'([^']*)'")
_RANGE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_NUMBER = re.compile(r"[+-]?[0-9.]+")


class _Field(NamedTuple):
    name: str


class _Range(NamedTuple):
    """Items of a list. `is_index`: the end is missing, so the range has one item."""

    first: int | None
    end: int | None
    step: int | None
    is_index: bool


class _Union(NamedTuple):
    choices: tuple[tuple[_Step, ...], ...]


class _All(NamedTuple):
    """All values of a list or object; with `is_deep`, also the value itself and everything below it."""

    is_deep: bool


class _Constant(NamedTuple):
    value: object


class _Filter(NamedTuple):
    """A condition on list items: a path within the item exists, or its value compares with a constant or another path."""

    left: tuple[_Step, ...]
    compare: str
    right: tuple[_Step, ...]


_Step = _Field | _Range | _Union | _All | _Constant | _Filter


def first_value(path: str, document: object) -> object:
    """Return the first value that a path finds, or `MISSING`."""
    steps = _steps(path)
    try:
        found = _find(steps, [document]) if steps is not None else []
    except TypeError:  # A step that does not fit the value, or a comparison of different types.
        return MISSING
    return found[0] if found else MISSING


def is_valid(path: str) -> bool:
    """Return whether a path has valid syntax."""
    return _steps(path) is not None


@lru_cache(_MAX_PATHS)
def _steps(path: str) -> tuple[_Step, ...] | None:
    """Return the steps of a path, or None if the path is malformed."""
    steps: list[_Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        found = _parsed(match) if match is not None else None
        if match is None or found is None or (match["everywhere"] and steps and steps[-1] == _All(is_deep=True)):
            return None
        steps += found
        at = match.end()
    return tuple(steps)


def _parsed(match: re.Match[str]) -> list[_Step] | None:
    if match["everywhere"] or match["ignored"]:
        return [_All(is_deep=True)] if match["everywhere"] else []
    name = match["field"] if match["below"] is None else match["below"]
    if name is not None:
        return [_All(is_deep=False) if name == "*" else _Field(name.replace("\\", ""))]
    if match["array"] is not None:
        return _array(match["array"])
    left, right = _steps(match["left"]), _right(match["right"] or "")
    return None if left is None or right is None else [_Filter(left, match["compare"] or "", right)]


def _right(text: str) -> tuple[_Step, ...] | None:
    """Return the steps for the right side of a comparison."""
    if text.startswith("@"):
        return _steps(text)
    found = _constant(text)
    return None if found is MISSING else (_Constant(found),)


def _array(text: str) -> list[_Step] | None:
    """Return the steps for the text between brackets: a union, a quoted path, or a range of items."""
    if "," in text:
        choices = [_array(each.strip(" ")) for each in text.split(",")]
        return None if None in choices else [_Union(tuple(tuple(each or ()) for each in choices))]
    quoted = _QUOTED.fullmatch(text)
    if quoted is not None:
        found = _steps(f".{quoted[1]}")
        return None if found is None else list(found)
    match = _RANGE.fullmatch(":" if text == "*" else text)
    if match is None:
        return None
    try:
        first, end, step = (int(each) if each else None for each in (part.lstrip(":") for part in match.groups("")))
    except ValueError:  # A sign without digits, or too many digits.
        return None
    if any(each is not None and not -(2**63) <= each < 2**63 for each in (first, end, step)):
        return None
    return [_Range(first, (first or 0) + 1 if match[2] is None else end, step, match[2] is None)]


def _constant(text: str) -> object:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false", ""):
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return MISSING
    try:
        number = float(text)
        whole = int(text) if "." not in text else None
    except ValueError:
        return MISSING
    if whole is not None and -(2**63) <= whole < 2**63:
        return whole
    return number if isfinite(number) else MISSING


def _find(steps: tuple[_Step, ...], values: list[object]) -> list[object]:
    """Return what steps find in values.

    Raises:
        TypeError: a step does not fit a value, or finds too many values.
    """
    for step in steps:
        if isinstance(step, _Range):
            values = _items(step, values)
        elif isinstance(step, _Union):
            values = [each for choice in step.choices for each in _find(choice, values)]
        else:
            found: list[object] = []
            for value in values:
                found += _below(step, value)
                if len(found) > _MAX_VALUES:
                    raise TypeError(step)
            values = found
    return values


def _items(step: _Range, values: list[object]) -> list[object]:
    """Return items of lists. As in upstream, an empty range ends the search."""
    found: list[object] = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise TypeError(step)
        first, end, size = step.first or 0, step.end, len(value)
        if first < 0:
            first += size
        if end is None:
            end = size
        elif end < 0 or (end == 0 and step.is_index):
            end += size
        if first == end:
            return found
        if not 0 <= first < size or not first <= end <= size or (step.step is not None and step.step <= 0):
            raise TypeError(step)
        found += value[first : end : step.step]
    return found


def _below(step: _Field | _All | _Constant | _Filter, value: object) -> list[object]:
    if isinstance(step, _Constant):
        return [step.value]
    if value is None:
        return []
    if isinstance(step, _Field):
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if isinstance(step, _All):
        return list(_descendants(value)) if step.is_deep else _values(value)
    if not isinstance(value, list):
        raise TypeError(step)
    return [item for item in value if _matches(step, item)]


def _values(value: object) -> list[object]:
    if isinstance(value, dict):
        return [value[name] for name in sorted(value)]
    return value if isinstance(value, list) else []


def _descendants(value: object) -> Iterator[object]:
    """Yield all lists and objects in a value, including itself, from the outside."""
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, dict | list) and each:
            yield each
            rest += reversed(_values(each))


def _matches(condition: _Filter, item: object) -> bool:
    found = _find(condition.left, [item])
    if not found or not condition.compare:
        return bool(found)
    others = _find(condition.right, [item])
    if len(found) > 1 or len(others) > 1:
        raise TypeError(condition)
    if not others:
        return False
    left, right = found[0], others[0]
    if type(left) is not type(right) or not isinstance(left, bool | int | float | str):
        raise TypeError(condition)
    if condition.compare in ("==", "!="):
        return (left == right) is (condition.compare == "==")
    if isinstance(left, bool):
        raise TypeError(condition)
    is_less, is_greater = left < right, left > right  # type: ignore[operator]
    return {"<": is_less, ">": is_greater, "<=": not is_greater, ">=": not is_less}[condition.compare]
