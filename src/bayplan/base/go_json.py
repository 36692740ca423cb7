"""Write JSON as Go's ``encoding/json`` does with its defaults."""

from __future__ import annotations

import re

import msgspec

# Map keys are sorted, fields of structs are not: so does Go.
_ENCODER = msgspec.json.Encoder(order="deterministic")
# What is special in HTML, or ends a line in JavaScript. All of them stand in strings only, so a text can be looked at as a whole.
_ESCAPED = re.compile("[<>&\u2028\u2029]")


def go_json(value: object) -> str:
    """Return compact JSON: map keys sorted by bytes, ``<``, ``>``, ``&`` and two line separators escaped, other text raw.

    Args:
        value: what msgspec can encode (plain data, structs), without floats: their digits may differ from Go's.
    """
    return _ESCAPED.sub(_escape, _ENCODER.encode(value).decode())


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
