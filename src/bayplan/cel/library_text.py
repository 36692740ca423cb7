"""Functions of strings and lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from bayplan.base.go_regexp import COMPILE_STEPS, Regexp, RegexpError, compile_regexp
from bayplan.cel.meter import LETTERS_PER_WORK, spend_copy, spend_work
from bayplan.cel.problems import RunProblem
from bayplan.cel.times import Duration, Timestamp
from bayplan.cel.values import compare, equal, shown
from bayplan.objects.quantity import SPACES

SEARCHED_PER_WORK = 1_000
"""Number of bytes that a search without match reads in the time that one unit of work stands for."""
_ILLEGAL = "Illegal regex: "


REGEXP_STEPS_PER_WORK = 50
"""Number of regular expression steps per unit of work: a step takes at most 20 ns."""


def _pattern(expression: str, text: str, prefix: str = "") -> Regexp:
    """Return a compiled regular expression, after counting the work to compile it and to match a text."""
    try:
        compiled = compile_regexp(_text(expression))
    except RegexpError as problem:
        raise RunProblem(f"{prefix}{problem}") from None
    steps = compiled.size * (COMPILE_STEPS + len(_text(text).encode("utf-8", "replace")))
    spend_work(steps // REGEXP_STEPS_PER_WORK)
    return compiled


def _matches(text: str, expression: str) -> bool:
    return _pattern(expression, text).matches(text)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _find(text: str, expression: str) -> str:
    return _pattern(expression, text, _ILLEGAL).find(text)


def _find_all(text: str, expression: str, limit: int = -1) -> list[object]:
    found: list[object] = []
    compiled = _pattern(expression, text, _ILLEGAL)
    for match, left in compiled.find_each(text) if limit else ():
        found.append(match)
        if len(found) == limit:
            break
        spend_work(left // SEARCHED_PER_WORK)
    return found


def _char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(_text(text)):
        raise RunProblem(f"index out of range: {place}")
    return text[place : place + 1]


def _index_of(target: object, item: object, start: int = 0) -> int:
    if isinstance(target, list):
        return next((place for place, other in enumerate(target) if equal(other, item)), -1)
    text, part = _text(target), _text(item)
    if not part:
        return start
    if start < 0:
        raise RunProblem(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(target: object, item: object, start: int | None = None) -> int:
    if isinstance(target, list):
        return next((place for place in reversed(range(len(target))) if equal(target[place], item)), -1)
    text, part = _text(target), _text(item)
    if not part:
        return len(text) if start is None else start
    if start is not None and start < 0:
        raise RunProblem(f"index out of range: {start}")
    if start is not None and start >= len(text):
        return -1
    return text.rfind(part, 0, None if start is None else start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    length = len(_text(text))
    if end is None:
        if not 0 <= start <= length:
            raise RunProblem(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise RunProblem(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= length:
            raise RunProblem(f"index out of range: {place}")
    return text[start:end]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = _text(text).count(_text(old))
    spend_work((count if limit < 0 else min(count, limit)) * len(_text(new)) // LETTERS_PER_WORK)
    return text.replace(old, new, limit if limit >= 0 else -1)


def _split(text: str, separator: str, limit: int = -1) -> list[object]:
    if limit == 0:
        return []
    spend_work(len(_text(text)))
    if not _text(separator):
        letters: list[object] = list(_text(text))
        return letters if limit < 0 or len(letters) <= limit else [*letters[: limit - 1], text[limit - 1 :]]
    return [*_text(text).split(separator, limit - 1 if limit > 0 else -1)]


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    def changed(text: str) -> str:
        if _text(text).isascii():
            return change(text)
        return "".join(change(char) if char.isascii() else char for char in text)

    return changed


def normalized_version(text: str) -> str:
    """Return a version in its full form: without ``v``, and with three numbers without leading zeros.

    Raises:
        RunProblem: a version with fewer than three numbers has a suffix.
    """
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            parts[place] = rest if rest[:1].isdigit() else "0" + rest
    if len(parts) < 3 and any(char in parts[-1] for char in "+-"):
        raise RunProblem("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError
    return value


_ORDERED = (bool, int, float, str, bytes, Timestamp, Duration)


def order(left: object, right: object) -> int | None:
    """Return -1, 0 or 1; None if the values can't be ordered, such as NaN and values of different types."""
    if isinstance(left, bool) or isinstance(right, bool):
        comparable = isinstance(left, bool) and isinstance(right, bool)
    elif isinstance(left, int | float) and isinstance(right, int | float):
        comparable = left == left and right == right
    else:
        comparable = isinstance(left, _ORDERED) and type(left) is type(right)
    return compare(left, right) if comparable else None


def _ordered(items: object) -> list[object]:
    """Return a list whose first element has an order, which decides whether there is an overload."""
    found = _list(items)
    if found and not isinstance(found[0], _ORDERED):
        raise TypeError
    return found


def _with_order(item: object) -> object:
    """Return an element after the first. Raises RunProblem if elements of its type have no order."""
    if not isinstance(item, _ORDERED):
        raise RunProblem("no such overload")
    return item


def _is_sorted(items: object) -> bool:
    return all(order(left, _with_order(right)) != 1 for left, right in pairwise(_ordered(items)))


def _extreme(name: str, sign: int) -> Callable[[list[object]], object]:
    def find(items: list[object]) -> object:
        if not _ordered(items):
            raise RunProblem(f"{name} called on empty list")
        best = items[0]
        for item in map(_with_order, items[1:]):
            if order(item, best) == sign:
                best = item
        return best

    return find


def _contains_all(left: list[object], right: list[object]) -> bool:
    spend_work(len(_list(left)) * len(_list(right)))
    return all(any(equal(item, other) for other in left) for item in right)


def _intersects(left: list[object], right: list[object]) -> bool:
    spend_work(len(_list(left)) * len(_list(right)))
    return any(equal(item, other) for item in left for other in right)


def _join(items: list[object], separator: str = "") -> str:
    if _list(items):
        _text(items[0])  # The first element decides whether there is an overload.
    for item in items:
        if not isinstance(item, str):
            raise RunProblem(f"join: invalid input: {shown(item)}")
    texts = [_text(item) for item in items]
    spend_work((sum(map(len, texts)) + len(texts) * len(_text(separator))) // LETTERS_PER_WORK)
    return separator.join(texts)


def _counted(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that counts reading its arguments as work before it runs."""

    def call(*args: object) -> object:
        spend_copy(*args)
        return function(*args)

    return call


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "contains": lambda text, part: _text(part) in _text(text),
    "endsWith": lambda text, part: _text(text).endswith(_text(part)),
    "startsWith": lambda text, part: _text(text).startswith(_text(part)),
    "matches": _matches,
    "find": _find,
    "findAll": _find_all,
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": lambda text: _text(text).strip(SPACES),
    "join": _join,
    "isSorted": _is_sorted,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "sets.contains": _contains_all,
    "sets.equivalent": lambda left, right: _contains_all(left, right) and _contains_all(right, left),
    "sets.intersects": _intersects,
}

FUNCTIONS: Mapping[str, Callable[..., object]] = {name: _counted(function) for name, function in _FUNCTIONS.items()}
