"""Validation of CronJob schedules, with the messages of upstream's parser."""

from __future__ import annotations

import re

from bayplan.base.go_text.durations import parse_duration
from bayplan.base.go_text.quoting import GoTextError
from bayplan.objects.selectors import quote

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}), (0, 23, {}), (1, 31, {}),
    (1, 12, {name: index for index, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: index for index, name in enumerate(_DAYS)}),
)  # fmt: skip
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


class _Problem(Exception):
    """A field of a schedule is invalid."""


def schedule_problem(text: str) -> str:
    """Return the parser's message about an invalid schedule, or an empty string."""
    rest = text
    if text.startswith(("TZ=", "CRON_TZ=")):
        rest = text.partition(" ")[2].strip()
    if rest.startswith("@"):
        return _descriptor_problem(rest)
    fields = rest.split()
    if len(fields) != len(_BOUNDS):
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, (low, high, names) in zip(fields, _BOUNDS, strict=True):
            for piece in filter(None, field.split(",")):
                _check(piece, low, high, names)
    except _Problem as problem:
        return str(problem)
    return ""


def _descriptor_problem(text: str) -> str:
    if text in _DESCRIPTORS:
        return ""
    if not text.startswith("@every "):
        return f"unrecognized descriptor: {text}"
    duration = text.removeprefix("@every ")
    try:
        parse_duration(duration)
    except GoTextError as problem:
        return f"failed to parse duration {text}: {problem}"
    return ""


def _check(text: str, low: int, high: int, names: dict[str, int]) -> None:
    bounds, *steps = text.split("/")
    ends = bounds.split("-")
    if ends[0] in ("*", "?"):
        start, end = low, high
    else:
        start = end = _number(ends[0], names)
        if len(ends) == 2:
            end = _number(ends[1], names)
        elif len(ends) > 2:
            raise _Problem(f"too many hyphens: {text}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0], {})
        end = high if len(ends) == 1 else end
    elif steps:
        raise _Problem(f"too many slashes: {text}")
    for wrong, problem in (
        (start < low, f"beginning of range ({start}) below minimum ({low})"),
        (end > high, f"end of range ({end}) above maximum ({high})"),
        (start > end, f"beginning of range ({start}) beyond end of range ({end})"),
        (step == 0, "step of range should be a positive number"),
    ):
        if wrong:
            raise _Problem(f"{problem}: {text}")


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if not re.fullmatch(r"[+-]?[0-9]+", text) or len(text) > 19:
        raise _Problem(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    number = int(text)
    if number < 0:
        raise _Problem(f"negative number ({number}) not allowed: {text}")
    return number
