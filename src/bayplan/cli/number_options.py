"""Checks of numbers that options accept as text, but that no component can use."""

from __future__ import annotations

import math

import typer

from bayplan.base.errors import InputError

MAX_SECONDS = 86_400.0 * 365
"""Longest time limit; the operating system's limit is about 290 years."""


def finite(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value of an option, or raise InputError if it is no finite number."""
    if value is not None and not math.isfinite(value):
        raise InputError(parameter.opts[0], got=str(value), wanted="a finite number")
    return value


def time_limit(parameter: typer.CallbackParam, value: float) -> float:
    """Return the seconds of an option, or raise InputError if they are no positive number, or longer than a year."""
    if not 0.0 < value <= MAX_SECONDS:
        raise InputError(parameter.opts[0], got=f"{value:g}", wanted="a positive number of seconds, at most a year")
    return value
