"""Callbacks that reject option values outside the usable range."""

from __future__ import annotations

import math

import typer

from bayplan.base.errors import InputError

MAX_SECONDS = 86_400.0 * 365
"""Longest time limit; the operating system's limit is about 290 years."""


def finite(parameter: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value of an option. Raise InputError if it is not finite."""
    if value is not None and not math.isfinite(value):
        raise InputError(parameter.opts[0], got=str(value), wanted="a finite number")
    return value


def time_limit(parameter: typer.CallbackParam, value: float) -> float:
    """Return the seconds of an option. Raise InputError unless they are positive and at most a year."""
    if not 0.0 < value <= MAX_SECONDS:
        raise InputError(parameter.opts[0], got=f"{value:g}", wanted="a positive number of seconds, at most a year")
    return value
