"""Resolve YAML scalars as kubectl does: goyaml's resolution of plain scalars and tags, then a conversion to JSON.

The rules are those of sigs.k8s.io/yaml v1.6.0 (goyaml v2) and of Go's JSON encoder; `bayplan.formats.yaml_text`
describes their effect.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

from bayplan.base.go_text.base64 import decode_base64
from bayplan.base.go_text.json import float32, shortest_text
from bayplan.base.go_text.quoting import GoTextError

Scalar = bool | int | float | str | None

_STANDARD = "tag:yaml.org,2002:"
MERGE_TAG = _STANDARD + "merge"
_NAMES: dict[type[object], str] = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}
_DATE = re.compile(
    r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])"
    r"(?:(?:[Tt](?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2}))"
    r"|(?: (?:[01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](?:\.[0-9]+)?))?",
    re.ASCII,
)
_NO_TEXT = re.compile("[\udc80-\udcff]")

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
HINTS = "yYnNtTfFoO~+-.0123456789"
"""The first characters of plain scalars that may not be strings."""

_DIGITS = r"0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*"
_SIGNED = re.compile(rf"[+-]?(?:{_DIGITS})")
_UNSIGNED = re.compile(_DIGITS)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_POINT_FIRST = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar before conversion to JSON: integers have any size, floats may be infinite or NaN."""
    if text[:1] not in HINTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first == ".":
        return _float(text, text) if _POINT_FIRST.fullmatch(text) else text
    if first not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    if _SIGNED.fullmatch(plain):
        number = _integer(plain)
        if -(2**63) <= number < 2**63 or (number < 2**64 and _UNSIGNED.fullmatch(plain)):
            return number
    if _FLOAT.fullmatch(plain):
        return _float(plain, text)
    return text


def _integer(text: str) -> int:
    """Parse an integer as Go does with base 0: a leading 0 alone means octal."""
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        return sign * int(digits, 8)
    if digits[0] != "0":
        # Python refuses to read thousands of digits, and 21 are already too many for 64 bits.
        digits = digits[:21]
    return sign * int(digits, 0)


def _float(plain: str, text: str) -> float | str:
    """Parse a float. If it is too large, return its text, because Go's parser rejects it."""
    number = float(plain)
    return text if math.isinf(number) else number


def json_value(value: Scalar) -> Scalar:
    """Convert a value to JSON and back: integral floats become integers, huge integers become floats.

    Raises:
        ValueError: the value is infinite or NaN, which JSON does not allow.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("an infinity or NaN, which JSON does not have")
        if value.is_integer():
            number = int(Decimal(repr(value)))  # Use the shortest digits, as Go does: 2^62 + 1.0 ends in zeros.
            return number if -(2**63) <= number < 2**63 else value
        return value
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def key_text(key: Scalar) -> str:
    """Return the field name for a mapping key, given its value before conversion to JSON.

    Raises:
        ValueError: the key is null, or an integer beyond 64 bits.
    """
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str):
        return key
    if key is None:
        raise ValueError("a null key")
    if isinstance(key, float):
        return _float32_text(key)
    if key >= 2**63:
        raise ValueError("an integer key of more than 64 bits")
    return str(key)


def _float32_text(value: float) -> str:
    """Format a float like Go's FormatFloat(v, 'g', -1, 32): with the shortest digits that yield the same float32."""
    if math.isnan(value):
        return ".nan"
    try:
        value = float32(value)
    except OverflowError:
        value = math.copysign(math.inf, value)
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return shortest_text(value)


_Result = TypeVar("_Result")


class _Cache(dict[str, _Result]):
    """The results of a function of the text of plain scalars."""

    def __init__(self, convert: Callable[[str], _Result]) -> None:
        self._convert = convert

    def __missing__(self, text: str) -> _Result:
        if len(self) > 50_000:
            self.clear()
        result = self[text] = self._convert(text)
        return result


VALUES = _Cache(lambda text: json_value(resolve(text)))
"""The values of plain scalars after their conversion to JSON."""

KEYS = _Cache(lambda text: key_text(resolve(text)))
"""The field names for plain mapping keys; equal names share one string."""


class TagError(ValueError):
    """A scalar that does not match its explicit tag. `go_problem` is the message of go-yaml."""

    def __init__(self, problem: str, go_problem: str) -> None:
        super().__init__(problem)
        self.go_problem = go_problem


def tagged_value(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit tag, before conversion to JSON. Tags of other types are ignored.

    Raises:
        TagError: the text is not of the tag's type.
    """
    name = tag.removeprefix(_STANDARD) if tag.startswith(_STANDARD) else ""
    if name == "binary":
        try:
            data = decode_base64(text)
        except GoTextError:
            raise TagError("!!binary that is not base64", "!!binary value contains invalid base64 data") from None
        return _NO_TEXT.sub("\ufffd", data.decode("utf-8", "surrogateescape"))
    if name == "timestamp" and _DATE.fullmatch(text):
        return text
    if name not in ("bool", "int", "float", "null", "timestamp"):
        return text
    value = resolve(text)
    found = _NAMES[type(value)]
    if name == "float" and isinstance(value, int) and found == "int" and value < 2**63:
        return float(value)
    if found != name:
        raise TagError(f"!!{name} before {text!r}", f"cannot decode !!{found} `{text}` as a !!{name}")
    return value
