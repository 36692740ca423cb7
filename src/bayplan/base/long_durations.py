"""Durations in Go's format that may also begin with days: `7d`, `1d12h`, `90s`."""

import re

from bayplan.base.durations import DAY_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import read_duration

_DAYS = re.compile(r"(?:([0-9]{1,6})d)?(.*)", re.DOTALL)


def read_long_duration(text: str, *, what: str) -> int:
    """Return the nanoseconds of a duration.

    Args:
        text: the duration.
        what: the name of the option or field, for errors.

    Raises:
        InputError: the text is not a duration, or negative.
    """
    match = _DAYS.fullmatch(text)
    days, rest = match.groups() if match is not None else (None, text)
    try:
        duration_ns = int(days or 0) * DAY_NS + (read_duration(rest) if rest or days is None else 0)
    except InputError:
        duration_ns = -1
    if duration_ns < 0 or rest.startswith("-"):
        raise InputError(what, got=repr(text), wanted="a duration", hint="'90s', '1h30m' or '7d'")
    return duration_ns
