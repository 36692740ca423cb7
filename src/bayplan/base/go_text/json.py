"""JSON as Go's `encoding/json` writes it, and the errors of its decoder."""

from __future__ import annotations

import json
import re
import struct
from contextlib import suppress
from decimal import Decimal
from math import isfinite

import msgspec

# Sorts map keys, but not the fields of structs, like Go.
_ENCODER = msgspec.json.Encoder(order="deterministic")
# Characters that are special in HTML, or line breaks in JavaScript. They occur only within strings, so one search of
# the whole text finds them.
_ESCAPED = re.compile("[<>&\u2028\u2029]")
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX = frozenset("0123456789abcdefABCDEF")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
MAX_DEPTH = 10_000
"""Maximum nesting depth of arrays and objects."""


# --- writing ----------------------------------------------------------------------------------------------------------


def go_json(value: object) -> str:
    """Return compact JSON: map keys sorted, `<`, `>`, `&` and two line separators escaped, other text unchanged.

    Args:
        value: a value that msgspec can encode (plain data, structs), without floats: their digits may differ from Go's;
            `json_text` writes Go's.
    """
    return _ESCAPED.sub(_escape, _ENCODER.encode(value).decode())


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def json_string(text: str) -> str:
    """Return a string as `json.Marshal` writes it."""
    return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))


def json_text(value: object) -> str:
    """Write plain data (None, bool, int, float, str, list, tuple, dict) as compact JSON; keys keep their order."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return json_float(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_string(str(key))}:{json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(json_text(item) for item in value) + "]"
    raise TypeError(f"no JSON form for {type(value).__name__}")


def json_float(value: float) -> str:
    """Format a finite float64 like `json.Marshal`: shortest digits, and an exponent only below 1e-6 or from 1e21."""
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    if 1e-6 <= abs(value) < 1e21:
        return positional_text(value)
    mantissa, _, exponent = _scientific(value).partition("e")
    # json.Marshal writes e-9 for the e-09 of strconv.
    if exponent[0] == "-" and exponent[1] == "0":
        exponent = "-" + exponent[2:]
    return f"{mantissa}e{exponent}"


def yaml_number(value: float) -> str:
    """Format a finite float64 like go-yaml after a round trip through `json.Marshal`: integers as such, others with %g.

    It has as few digits as possible. It has an exponent below 1e-4; and from 1e6 on, unless JSON writes it as an
    integer.
    """
    text = json_float(value)
    return text if text.lstrip("-").isdigit() else shortest_text(value)


def shortest_text(value: float) -> str:
    """Format a float64 like `FormatFloat(v, 'g', -1, 64)`: shortest digits, an exponent below 1e-4 and from 1e6."""
    if not isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    power = int(_scientific(value).partition("e")[2])
    return positional_text(value) if -4 <= power < 6 else _scientific(value)


def go_map(value: object) -> str:
    """Return a JSON value as Go's verb ``%v`` prints it."""
    if isinstance(value, dict):
        inner = " ".join(f"{name}:{go_map(item)}" for name, item in sorted(value.items()))
        return f"map[{inner}]"
    if isinstance(value, list):
        return f"[{' '.join(go_map(item) for item in value)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and not -(2**63) <= value < 2**63 and value.bit_length() < 1024:
        value = float(value)  # Go decodes whole numbers beyond 64 bits as floats.
    return shortest_text(value) if isinstance(value, float) and isfinite(value) else str(value)


def float32(value: float) -> float:
    """Round to a float32; return the float64 that is written with the digits of that float32.

    Raises:
        OverflowError: the value is out of the range of float32.
    """
    exact = _nearest_float32(value)
    for digits in range(1, 10):
        candidate = float(f"{exact:.{digits}g}")
        # Rounding a large number to few digits may leave the range of float32.
        with suppress(OverflowError):
            if _nearest_float32(candidate) == exact:
                return candidate
    return exact


def _nearest_float32(value: float) -> float:
    nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return nearest


def positional_text(value: float) -> str:
    """Format a finite float64 like `FormatFloat(v, 'f', -1, 64)`: shortest digits, without an exponent."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scientific(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    figures = "".join(map(str, digits))
    power = len(digits) - 1 + int(exponent)
    mantissa = figures[0] + ("." + figures[1:] if len(figures) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


# --- reading ----------------------------------------------------------------------------------------------------------


class GoJsonError(ValueError):
    """Invalid JSON; the message is that of Go's decoder."""


def decode_first(data: bytes) -> object:
    """Return the first value in a text as plain data; what follows is ignored.

    Raises:
        GoJsonError: the text does not begin with a JSON value.
    """
    text = data.decode("utf-8", "replace")
    start = _space(text, 0)
    if start == len(text):
        raise GoJsonError("EOF")
    end = _Scanner(text, is_whole=False).value_end(start)
    try:
        found: object = json.loads(text[start:end])
    except RecursionError:
        # Python allows less nesting than Go, but more than anyone needs.
        raise GoJsonError("exceeded max depth") from None
    return found


def json_problem(text: str) -> str:
    """Return the error of Go's `json.Unmarshal` for a text, or `""` if the text is valid."""
    scanner = _Scanner(text, is_whole=True)
    try:
        place = _space(text, scanner.value_end(0))
        if place < len(text):
            raise _wrong(text[place], "after top-level value")
    except GoJsonError as problem:
        return str(problem)
    return ""


def json_entries(text: str) -> list[tuple[str, str]]:
    """Return the values in a valid JSON object or array as JSON texts, each with its key; `""` in an array.

    It does not decode the values, which may nest deeply.
    """
    scanner, place = _Scanner(text, is_whole=True), _space(text, 0)
    closing = "}" if text[place] == "{" else "]"
    found = []
    place = _space(text, place + 1)
    while text[place] != closing:
        key = ""
        if closing == "}":
            place, key = scanner.key(place)
        place = _space(text, place)
        end = scanner.value_end(place)
        found.append((key, text[place:end]))
        place = _space(text, end)
        if text[place] == ",":
            place = _space(text, place + 1)
    return found


def _space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    assert match is not None
    return match.end()


class _Scanner:
    """Finds the end of a value, or the first error in it."""

    def __init__(self, text: str, *, is_whole: bool) -> None:
        self._text = text
        # Go's decoders of streams and of complete texts report a truncated text differently.
        self._is_whole = is_whole

    def value_end(self, place: int) -> int:
        """Return the end of the value that starts at a position.

        Open containers are in a list, not on the stack: they may nest deeply.
        """
        open_containers: list[str] = []
        expecting = "value"
        while True:
            place = _space(self._text, place)
            char = self._at(place)
            if expecting == "value":
                if char in "{[":
                    open_containers.append(char)
                    if len(open_containers) > MAX_DEPTH:
                        raise GoJsonError("exceeded max depth")
                    place += 1
                    expecting = "first key" if char == "{" else "first element"
                    continue
                place = self._scalar_end(place, char)
                expecting = "end"
            elif expecting == "first element":
                if char == "]":
                    open_containers.pop()
                    place, expecting = place + 1, "end"
                else:
                    expecting = "value"
                    continue
            elif expecting in ("first key", "key"):
                if char == "}" and expecting == "first key":
                    open_containers.pop()
                    place, expecting = place + 1, "end"
                elif char != '"':
                    raise _wrong(char, "looking for beginning of object key string")
                else:
                    place = self._after_key(self._string_end(place))
                    expecting = "value"
                    continue
            while open_containers:
                place = _space(self._text, place)
                char, container = self._at(place), open_containers[-1]
                place += 1
                if char == ",":
                    expecting = "key" if container == "{" else "value"
                    break
                if char != ("}" if container == "{" else "]"):
                    raise _wrong(char, "after object key:value pair" if container == "{" else "after array element")
                open_containers.pop()
            else:
                return place

    def key(self, place: int) -> tuple[int, str]:
        """Return the position after the colon of a key, and the key."""
        end = self._string_end(place)
        found: str = json.loads(self._text[place:end])
        return self._after_key(end), found

    def _after_key(self, place: int) -> int:
        place = _space(self._text, place)
        char = self._at(place)
        if char != ":":
            raise _wrong(char, "after object key")
        return place + 1

    def _scalar_end(self, place: int, char: str) -> int:
        if char == '"':
            return self._string_end(place)
        if char in _LITERALS:
            return self._literal_end(place, _LITERALS[char])
        if char == "-" or (char.isascii() and char.isdigit()):
            return self._number_end(place)
        raise _wrong(char, "looking for beginning of value")

    def _string_end(self, place: int) -> int:
        place += 1
        while True:
            match = _PLAIN.match(self._text, place)
            assert match is not None
            place = match.end()
            char = self._at(place)
            if char == '"':
                return place + 1
            if char != "\\":
                raise _wrong(char, "in string literal")
            escape = self._inside(place + 1)
            if escape == "u":
                for number in range(place + 2, place + 6):
                    if self._inside(number) not in _HEX:
                        raise _wrong(self._inside(number), "in \\u hexadecimal character escape")
                place += 6
            elif escape in '"\\/bfnrt':
                place += 2
            else:
                raise _wrong(escape, "in string escape code")

    def _literal_end(self, place: int, literal: str) -> int:
        for number, wanted in enumerate(literal):
            char = self._inside(place + number)
            if char != wanted:
                raise _wrong(char, f"in literal {literal} (expecting '{wanted}')")
        return place + len(literal)

    def _number_end(self, place: int) -> int:
        if self._text[place] == "-":
            place = self._some_digit(place + 1, "in numeric literal") - 1
        place = place + 1 if self._text[place] == "0" else self._digits(place)
        if self._text[place : place + 1] == ".":
            place = self._digits(self._some_digit(place + 1, "after decimal point in numeric literal"))
        if self._text[place : place + 1] in ("e", "E"):
            place += 2 if self._text[place + 1 : place + 2] in ("+", "-") else 1
            place = self._digits(self._some_digit(place, "in exponent of numeric literal"))
        return place

    def _some_digit(self, place: int, context: str) -> int:
        char = self._inside(place)
        if not (char.isascii() and char.isdigit()):
            raise _wrong(char, context)
        return place + 1

    def _digits(self, place: int) -> int:
        while self._text[place : place + 1].isascii() and self._text[place : place + 1].isdigit():
            place += 1
        return place

    def _at(self, place: int) -> str:
        if place >= len(self._text):
            raise GoJsonError("unexpected end of JSON input" if self._is_whole else "unexpected EOF")
        return self._text[place]

    def _inside(self, place: int) -> str:
        """Return the next character of a number, literal or escape; after the end of a complete text, a space."""
        return " " if self._is_whole and place >= len(self._text) else self._at(place)


def _wrong(char: str, context: str) -> GoJsonError:
    return GoJsonError(f"invalid character {_quoted(char)} {context}")


def _quoted(char: str) -> str:
    """Quote a character as Go does: Go quotes the first byte of a multi-byte character, as if it were a character."""
    first = chr(char.encode("utf-8", "surrogateescape")[0])
    if first == "'":
        return "'\\''"
    if first == '"':
        return "'\"'"
    if first == "\\":
        return "'\\\\'"
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
    if first in named:
        return f"'{named[first]}'"
    if ord(first) < 0x20 or first == "\x7f":
        return f"'\\x{ord(first):02x}'"
    return f"'{first}'" if first.isprintable() else f"'\\u{ord(first):04x}'"
