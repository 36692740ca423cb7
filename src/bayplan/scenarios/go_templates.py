"""The part of Go's text/template that scheduler_perf's templates use: values, and functions of values.

``{{.Index}}``, ``{{DivideInt .Index .podsPerGroup}}``, ``{{AddInt 1 (Mod .Index 3)}}``. Conditions, loops and pipelines
are not supported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from bayplan.base.errors import InputError

Value = int | float | str

_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*(?:(?P<open>\()|(?P<close>\))|"(?P<text>[^"]*)"|(?P<word>[^\s()"]+))')
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?\d*\.\d+")


def _number(value: Value) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError("template argument", got=repr(value), wanted="a number") from None


def _shown(values: Sequence[float]) -> str:
    return " and ".join(f"{value:g}" for value in values) or "none"


def _divide(values: Sequence[float]) -> float:
    if len(values) != 2 or not values[1]:
        raise InputError("template", got=_shown(values), wanted="two numbers, the second not 0")
    return values[0] / values[1]


def _mod(values: Sequence[float]) -> float:
    if len(values) != 2 or not int(values[1]):
        raise InputError("template", got=_shown(values), wanted="two integers, the second not 0")
    return math.fmod(int(values[0]), int(values[1]))


_FUNCTIONS: dict[str, tuple[Callable[[Sequence[float]], float], bool]] = {
    "AddFloat": (math.fsum, False),
    "AddInt": (math.fsum, True),
    "DivideFloat": (_divide, False),
    "DivideInt": (_divide, True),
    "Mod": (_mod, True),
    "MultiplyFloat": (math.prod, False),
    "MultiplyInt": (math.prod, True),
    "SubtractFloat": (lambda values: values[0] - values[1], False),
    "SubtractInt": (lambda values: values[0] - values[1], True),
}
"""The functions, each with whether its result is an integer, truncated towards zero."""


def render(text: str, values: Mapping[str, Value], *, name: str) -> str:
    """Return a template with its expressions replaced by their values.

    Args:
        text: the template.
        values: the values by name, without the dot.
        name: the name of the template, for errors.

    Raises:
        InputError: an expression is not supported.
    """

    def replaced(match: re.Match[str]) -> str:
        try:
            return _text(_Reader(match[1], values).whole())
        except InputError as problem:
            where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            raise InputError(f"template {match[0]}", where=where, wanted=problem.wanted, got=problem.got) from None

    return _EXPRESSION.sub(replaced, text)


def _text(value: Value) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


class _Reader:
    """Parses and evaluates one expression, from left to right."""

    def __init__(self, text: str, values: Mapping[str, Value]) -> None:
        self._tokens = [(match.lastgroup or "", match[match.lastgroup or 0]) for match in _TOKEN.finditer(text)]
        self._values = values
        self._at = 0

    def whole(self) -> Value:
        """Return the value of the whole expression."""
        value = self._call()
        if self._at < len(self._tokens):
            raise InputError("template", got=repr(self._tokens[self._at][1]), wanted="the end of the expression")
        return value

    def _call(self) -> Value:
        """Parse a function call with its arguments, or a single value."""
        kind, text = self._next()
        if kind != "word" or text not in _FUNCTIONS:
            return self._value(kind, text)
        arguments: list[float] = []
        while self._at < len(self._tokens) and self._tokens[self._at][0] != "close":
            arguments.append(_number(self._value(*self._next())))
        if len(arguments) < 2:
            raise InputError("template", got=str(len(arguments)), wanted=f"at least two arguments of {text}")
        function, whole = _FUNCTIONS[text]
        found = function(arguments)
        return int(found) if whole else found

    def _value(self, kind: str, text: str) -> Value:
        if kind == "text":
            return text
        if kind == "open":
            value = self._call()
            if self._next()[0] != "close":
                raise InputError("template", got="the end", wanted="a closing parenthesis")
            return value
        if text.startswith(".") and text[1:] in self._values:
            return self._values[text[1:]]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            return float(text)
        known = ", ".join((*(f".{name}" for name in self._values), *_FUNCTIONS))
        raise InputError("template", got=repr(text), wanted=f"a number or one of {known}")

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise InputError("template", got="the end", wanted="a value")
        self._at += 1
        return self._tokens[self._at - 1]
