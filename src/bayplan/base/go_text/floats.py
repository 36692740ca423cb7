"""Floats as Go's `strconv` reads them."""

from __future__ import annotations

import math
import re

_DECIMAL, _HEX = r"\d+(?:_\d+)*", r"[0-9a-f]+(?:_[0-9a-f]+)*"
_FLOAT = re.compile(
    rf"[+-]?(?:(?:{_DECIMAL}(?:\.(?:{_DECIMAL})?)?|\.{_DECIMAL})(?:e[+-]?{_DECIMAL})?|inf|infinity)|nan",
    re.ASCII | re.IGNORECASE,
)
_HEX_FLOAT = re.compile(rf"[+-]?0x(?:_?{_HEX}(?:\.(?:{_HEX})?)?|\.{_HEX})p[+-]?{_DECIMAL}", re.ASCII | re.IGNORECASE)


def parse_float(text: str) -> float | None:
    """Return the number in a text as `ParseFloat` does; None if the text is not a number, or the number is out of range."""
    digits = text.replace("_", "")
    try:
        if _HEX_FLOAT.fullmatch(text):
            return float.fromhex(digits)
        found = float(digits) if _FLOAT.fullmatch(text) else None
    except (OverflowError, ValueError):
        return None
    return None if found is not None and math.isinf(found) and "n" not in text.lower() else found
