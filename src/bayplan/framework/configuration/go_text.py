"""Write and read values the way Go does: JSON text, durations, floats, base64.

The texts of kube-scheduler's errors are made of these. Nothing here knows about configurations.
"""

import re
import struct
from contextlib import suppress
from decimal import Decimal

from bayplan.base.durations import HOUR_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
}
_JSON_ESCAPES = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_JSON_HEX = frozenset("<>&\u2028\u2029")
_BASE64_ALPHABET = {
    character: value
    for value, character in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
}


class GoTextError(ValueError):
    """Say in Go's words why a text is no duration or no base64."""


def json_string(text: str) -> str:
    """Write a string as ``json.Marshal`` does: characters special to HTML are escaped."""
    parts = []
    for character in text:
        if escape := _JSON_ESCAPES.get(character):
            parts.append(escape)
        elif character < " " or character in _JSON_HEX:
            parts.append(f"\\u{ord(character):04x}")
        else:
            parts.append(character)
    return '"' + "".join(parts) + '"'


def json_text(value: object) -> str:
    """Write plain data (None, bool, int, float, str, list, tuple, dict) as compact JSON, in the given order of keys."""
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
    """Write a finite float64 as ``json.Marshal`` does: shortest digits, exponents only beyond 1e-6 and 1e21."""
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    if 1e-6 <= abs(value) < 1e21:
        return _positional(value)
    mantissa, _, exponent = _scientific(value).partition("e")
    # json.Marshal writes e-9 where strconv writes e-09.
    if exponent[0] == "-" and exponent[1] == "0":
        exponent = "-" + exponent[2:]
    return f"{mantissa}e{exponent}"


def float32(value: float) -> float:
    """Round to a float32 and give the float64 whose shortest digits are those of the float32.

    Raises:
        OverflowError: the value is beyond a float32.
    """
    exact = _nearest_float32(value)
    for digits in range(1, 10):
        candidate = float(f"{exact:.{digits}g}")
        # Few digits of a large number may lie beyond all of float32.
        with suppress(OverflowError):
            if _nearest_float32(candidate) == exact:
                return candidate
    return exact


def _nearest_float32(value: float) -> float:
    nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return nearest


def _positional(value: float) -> str:
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scientific(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    figures = "".join(map(str, digits))
    power = len(digits) - 1 + int(exponent)
    mantissa = figures[0] + ("." + figures[1:] if len(figures) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def parse_duration(text: str) -> int:
    """Read a Go duration (``1h30m``, ``1.5s``) into nanoseconds.

    Raises:
        GoTextError: in the words of ``time.ParseDuration``.
    """
    rest = text
    negative = rest.startswith("-")
    if rest[:1] in ("-", "+"):
        rest = rest[1:]
    if rest == "0":
        return 0
    if not rest:
        raise _invalid_duration(text)
    total = 0
    while rest:
        amount, rest = _duration_part(rest, text)
        total += amount
        if total > 1 << 63:
            raise _invalid_duration(text)
    if negative:
        return -total
    if total > (1 << 63) - 1:
        raise _invalid_duration(text)
    return total


def _duration_part(rest: str, whole: str) -> tuple[int, str]:
    """Read one number with its unit; give nanoseconds and what is left."""
    match = re.match(r"([0-9]*)(?:(\.)([0-9]*))?", rest, re.ASCII)
    assert match is not None
    integer, fraction = match[1], match[3] or ""
    if not integer and not fraction:
        raise _invalid_duration(whole)
    if integer and int(integer) > 1 << 63:
        raise _invalid_duration(whole)
    rest = rest[match.end() :]
    unit_match = re.match(r"[^0-9.]+", rest, re.ASCII)
    if unit_match is None:
        raise GoTextError(f"time: missing unit in duration {_duration_quote(whole)}")
    name = unit_match[0]
    unit = _UNIT_NS.get(name)
    if unit is None:
        raise GoTextError(f"time: unknown unit {_duration_quote(name)} in duration {_duration_quote(whole)}")
    value = int(integer or "0")
    if value > (1 << 63) // unit:
        raise _invalid_duration(whole)
    value *= unit
    digits, scale = _leading_fraction(fraction)
    if digits > 0:
        value += int(float(digits) * (float(unit) / scale))
        if value > 1 << 63:
            raise _invalid_duration(whole)
    return value, rest[unit_match.end() :]


def _leading_fraction(fraction: str) -> tuple[int, float]:
    """Read as many digits as fit into 63 bits; Go drops the others without rounding."""
    value, scale = 0, 1.0
    for digit in fraction:
        following = value * 10 + int(digit)
        if value > ((1 << 63) - 1) // 10 or following > 1 << 63:
            break
        value = following
        scale *= 10
    return value, scale


def _invalid_duration(text: str) -> GoTextError:
    return GoTextError(f"time: invalid duration {_duration_quote(text)}")


def _duration_quote(text: str) -> str:
    parts = []
    for character in text:
        if character < " " or character >= "\x80":
            parts.append("".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "replace")))
        elif character in '"\\':
            parts.append("\\" + character)
        else:
            parts.append(character)
    return '"' + "".join(parts) + '"'


def format_duration(duration_ns: int) -> str:
    """Write nanoseconds as Go's ``Duration.String`` does: ``10m0s``, ``1.5s``, ``500ms``."""
    amount = abs(duration_ns)
    sign = "-" if duration_ns < 0 else ""
    if amount == 0:
        return "0s"
    for limit, name in ((1_000, "ns"), (1_000_000, "\u00b5s"), (SECOND_NS, "ms")):
        if amount < limit:
            return f"{sign}{_decimal(amount, limit // 1_000)}{name}"
    seconds = amount // SECOND_NS
    text = _decimal(amount % (60 * SECOND_NS), SECOND_NS) + "s"
    if seconds >= 60:
        text = f"{seconds // 60 % 60}m{text}"
    if seconds >= 3600:
        text = f"{seconds // 3600}h{text}"
    return sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1).rstrip('0')}"


def decode_base64(text: str) -> bytes:
    """Decode standard base64; line breaks are passed over.

    Raises:
        GoTextError: in the words of Go's ``base64.CorruptInputError``, with its byte offset.
    """
    source = text.encode("utf-8", "replace")
    out = bytearray()
    index = 0
    while index < len(source):
        index, part, ends = _decode_quantum(source, index)
        out += part
        if ends:
            break
    return bytes(out)


def _decode_quantum(source: bytes, index: int) -> tuple[int, bytes, bool]:
    """Decode up to four characters from ``index``; give the next index, the bytes, and whether padding ended the data."""
    values: list[int] = []
    while len(values) < 4:
        if index == len(source):
            if not values:
                return index, b"", True
            raise _corrupt(index - len(values))
        character = source[index]
        index += 1
        if (value := _BASE64_ALPHABET.get(character)) is not None:
            values.append(value)
        elif character in b"\r\n":
            continue
        elif character != 0x3D or len(values) < 2:
            raise _corrupt(index - 1)
        else:
            return _end_padding(source, index, values)
    number = values[0] << 18 | values[1] << 12 | values[2] << 6 | values[3]
    return index, number.to_bytes(3, "big"), False


def _end_padding(source: bytes, index: int, values: list[int]) -> tuple[int, bytes, bool]:
    """Check what follows the first padding character of a quantum of two or three characters."""
    if len(values) == 2:
        index = _skip_breaks(source, index)
        if index == len(source):
            raise _corrupt(index)
        if source[index] != 0x3D:
            raise _corrupt(index - 1)
        index += 1
    index = _skip_breaks(source, index)
    if index < len(source):
        raise _corrupt(index)
    number = values[0] << 18 | values[1] << 12 | (values[2] << 6 if len(values) == 3 else 0)
    return index, number.to_bytes(3, "big")[: len(values) - 1], True


def _skip_breaks(source: bytes, index: int) -> int:
    while index < len(source) and source[index] in b"\r\n":
        index += 1
    return index


def _corrupt(offset: int) -> GoTextError:
    return GoTextError(f"illegal base64 data at input byte {offset}")
