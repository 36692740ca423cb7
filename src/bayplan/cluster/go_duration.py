"""Durations as Go writes them: ``90s``, ``1h30m``, ``1.5ms``. The form of our annotations and of ``@every``."""

from __future__ import annotations

import re

from bayplan.base.durations import HOUR_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number

_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_FRACTION_DIGITS = 30
_LARGEST_NS = 2**63 - 1


def parse_go_duration(text: str) -> int:
    """Return the nanoseconds of a duration, as Go's ``time.ParseDuration`` reads it.

    Fractions below a nanosecond are cut off; ``0`` needs no unit; a sign may stand in front.

    Raises:
        InputError: not a duration, or beyond 64 bits.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total_ns = 0
    position = 0
    while position < len(rest):
        term = _TERM.match(rest, position)
        if term is None or not (term[1] or term[2]):
            break
        unit_ns = _UNITS_NS[term[3]]
        total_ns += whole_number(term[1] or "0") * unit_ns
        if term[2]:
            # Further digits are below a nanosecond of any unit.
            fraction = term[2][:_FRACTION_DIGITS]
            total_ns += int(fraction) * unit_ns // 10 ** len(fraction)
        position = term.end()
    if not rest or position < len(rest) or total_ns > _LARGEST_NS:
        raise InputError("duration", got=repr(text), wanted="a duration with units", hint="'90s' or '1h30m'")
    return sign * total_ns
