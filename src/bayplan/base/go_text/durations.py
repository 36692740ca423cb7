"""Durations as Go's `time` package reads and writes them: `90s`, `1h30m`, `1.5ms`."""

import re

from bayplan.base.durations import HOUR_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.go_text.quoting import GoTextError, quote_bytes

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # The micro sign.
    "\u03bcs": 1_000,  # The Greek letter.
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
}
_NUMBER = re.compile(r"([0-9]*)(?:\.([0-9]*))?", re.ASCII)
_UNIT = re.compile(r"[^0-9.]+", re.ASCII)


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a duration in the format of Go's `time.ParseDuration`: `1h30m`, `-1.5s`, `.5us`.

    Fractions of a nanosecond are truncated; `0` needs no unit.

    Raises:
        GoTextError: the text is not a duration, or exceeds 64 bits; the message is that of `time.ParseDuration`.
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


def read_duration(text: str, what: str = "duration") -> int:
    """Return the nanoseconds of a duration that a user gave in an option or an annotation.

    Raises:
        InputError: `parse_duration` rejects the text; the message has an example of a valid duration.
    """
    try:
        return parse_duration(text)
    except GoTextError:
        raise InputError(what, got=repr(text), wanted="a duration with units", hint="'90s' or '1h30m'") from None


def _duration_part(rest: str, whole: str) -> tuple[int, str]:
    """Parse a number with its unit; return the nanoseconds and the remaining text."""
    match = _NUMBER.match(rest)
    assert match is not None
    integer, fraction = match[1], match[2] or ""
    if not integer and not fraction:
        raise _invalid_duration(whole)
    value = whole_number(integer or "0")
    if value > 1 << 63:
        raise _invalid_duration(whole)
    rest = rest[match.end() :]
    unit_match = _UNIT.match(rest)
    if unit_match is None:
        raise GoTextError(f"time: missing unit in duration {quote_bytes(whole)}")
    name = unit_match[0]
    unit = _UNIT_NS.get(name)
    if unit is None:
        raise GoTextError(f"time: unknown unit {quote_bytes(name)} in duration {quote_bytes(whole)}")
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
    """Read as many digits as fit into 63 bits, and return them with a power of ten; Go ignores further digits."""
    value, scale = 0, 1.0
    for digit in fraction:
        following = value * 10 + int(digit)
        if value > ((1 << 63) - 1) // 10 or following > 1 << 63:
            break
        value = following
        scale *= 10
    return value, scale


def _invalid_duration(text: str) -> GoTextError:
    return GoTextError(f"time: invalid duration {quote_bytes(text)}")


def format_duration(duration_ns: int) -> str:
    """Format nanoseconds like Go's `Duration.String`: `10m0s`, `1.5s`, `500ms`."""
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
