"""Resolve YAML scalars as kubectl does: goyaml's resolution of plain scalars and tags, then a conversion to JSON.

The rules are those of sigs.k8s.io/yaml v1.6.0 (goyaml v2) and of Go's JSON encoder; `bayplan.formats.yaml_text`
describes their effect.
"""

import base64
import binascii
import math
import re
import struct
from decimal import Decimal

Scalar = bool | int | float | str | None

_STANDARD = "tag:yaml.org,2002:"
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
        return _float(text) if _POINT_FIRST.fullmatch(text) else text
    if first not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    if _SIGNED.fullmatch(plain):
        number = _integer(plain)
        if -(2**63) <= number < 2**63 or (number < 2**64 and _UNSIGNED.fullmatch(plain)):
            return number
    if _FLOAT.fullmatch(plain):
        number_or_none = _float(plain)
        return text if number_or_none == plain else number_or_none
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


def _float(text: str) -> float | str:
    """Parse a float. A number that is too large stays a string, because Go's parser rejects it."""
    number = float(text)
    return text if math.isinf(number) else number


def plain_value(text: str) -> Scalar:
    """Return the value of a plain scalar after its conversion to JSON: integral floats are integers, huge integers are floats.

    Raises:
        ValueError: the value is infinite or NaN, which JSON does not allow.
    """
    return _through_json(resolve(text))


def _through_json(value: Scalar) -> Scalar:
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


def key_text(text: str) -> str:
    """Return the field name for a plain mapping key.

    Raises:
        ValueError: the key is null, or an integer beyond 64 bits.
    """
    value = resolve(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError("a null key")
    if isinstance(value, float):
        return _float32_text(value)
    if value >= 2**63:
        raise ValueError("an integer key of more than 64 bits")
    return str(value)


def _float32_text(value: float) -> str:
    """Format a float like Go's FormatFloat(v, 'g', -1, 32): with the shortest digits that yield the same float32."""
    if math.isnan(value):
        return ".nan"
    try:
        packed = struct.pack("f", value)
        (value,) = struct.unpack("f", packed)
    except OverflowError:
        value = math.copysign(math.inf, value)
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    digits = next(text for text in (f"{value:.{n}e}" for n in range(9)) if struct.pack("f", float(text)) == packed)
    mantissa, exponent = digits.split("e")
    power = int(exponent)
    if mantissa.strip("-0.") == "":
        return "-0" if mantissa.startswith("-") else "0"
    if power < -4 or power >= 6:
        sign = "-" if power < 0 else "+"
        return f"{mantissa}e{sign}{abs(power):02d}"
    return f"{float(digits):.{max(0, len(mantissa.lstrip('-').replace('.', '')) - 1 - power)}f}"


class _Values(dict[str, Scalar]):
    """A cache of plain scalars and their values."""

    def __missing__(self, text: str) -> Scalar:
        if len(self) > 50_000:
            self.clear()
        value = self[text] = plain_value(text)
        return value


class _Keys(dict[str, str]):
    """A cache of plain keys and their field names; equal names share one string."""

    def __missing__(self, text: str) -> str:
        if len(self) > 50_000:
            self.clear()
        key = self[text] = key_text(text)
        return key


VALUES = _Values()
"""`VALUES[text]` is `plain_value(text)`, cached."""

KEYS = _Keys()
"""`KEYS[text]` is `key_text(text)`, cached."""


def tagged_value(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit tag. Tags other than YAML's standard ones are ignored.

    Raises:
        ValueError: the text is not of the tag's type.
    """
    name = tag.removeprefix(_STANDARD)
    if name == "binary":
        try:
            data = base64.b64decode(text.encode(), validate=True)
        except binascii.Error:
            raise ValueError("!!binary that is not base64") from None
        return _NO_TEXT.sub("\ufffd", data.decode("utf-8", "surrogateescape"))
    if name not in ("bool", "int", "float", "null"):
        return text
    value = resolve(text)
    if name == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    fits = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, float),
        "null": value is None,
    }
    if not fits[name]:
        raise ValueError(f"!!{name} before {text!r}")
    return _through_json(value)
