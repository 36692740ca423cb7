"""Path elements of field sets that clients send, in the form in which upstream writes them."""

from __future__ import annotations

import json
import re
from math import isfinite

from bayplan.base.go_text.json import json_text

_MAX_DIGITS = 20
_INDEX = re.compile(r"[+-]?[0-9]+")


def element_text(element: str) -> str:
    """Return a path element as upstream writes it, or an empty text if its type is unknown.

    Raises:
        ValueError: the element is malformed.
        RecursionError: its value is nested too deeply.
    """
    kind, colon, rest = element.partition(":")
    if element == ".":
        return element
    if len(kind) != 1 or not colon:
        raise ValueError(element)
    if kind == "i":
        if not _INDEX.fullmatch(rest) or not -(2**63) <= int(rest) < 2**63:
            raise ValueError(element)
        return f"i:{int(rest)}"
    if kind == "v":
        return f"v:{json_text(_decoded(rest))}"
    if kind == "k":
        keys = _decoded(rest)
        if not isinstance(keys, dict | None):
            raise ValueError(element)
        return f"k:{json_text(dict(sorted((keys or {}).items())))}"
    return element if kind == "f" else ""


def _decoded(text: str) -> object:
    return json.loads(text, parse_constant=_refused, parse_float=_finite, parse_int=_whole)


def _whole(text: str) -> int | float:
    """Return a whole number; as in Go, a float beyond 64 bits."""
    number = int(text) if len(text) <= _MAX_DIGITS else None
    return number if number is not None and -(2**63) <= number < 2**63 else _finite(text)


def _refused(text: str) -> object:
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number
