"""Parse the value of ``--retain``: ``full=100000,bytes=512Mi,age=1h,summaries=500000``."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import read_duration
from bayplan.live.decision_store import Retention
from bayplan.objects.quantity import parse_quantity

_WANTED = "summaries=N, full=N, bytes=SIZE or age=DURATION, separated by commas"
_HINT = "'full=10000,bytes=256Mi,age=30m'"


def parse_retention(text: str) -> Retention:
    """Return the retention limits in a text, with the default for each limit that it omits.

    Raises:
        InputError: a limit is unknown, or a value is not a number, quantity or duration.
    """
    found: dict[str, int] = {}
    readers: dict[str, tuple[str, Callable[[str], int]]] = {
        "summaries": ("summaries", int),
        "full": ("full", int),
        "bytes": ("full_bytes", lambda value: parse_quantity(value).value()),
        "age": ("full_age_ns", read_duration),
    }
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = part.partition("=")
        if name not in readers or not equals:
            raise InputError("--retain", got=repr(part), wanted=_WANTED, hint=_HINT)
        field, read = readers[name]
        try:
            found[field] = read(value)
            Retention(**{field: found[field]})
        except InputError as problem:
            raise InputError(f"--retain {name}", got=repr(value), wanted=problem.wanted, hint=_HINT) from None
        except ValueError:
            raise InputError(f"--retain {name}", got=repr(value), wanted="an integer", hint=_HINT) from None
    return Retention(**found)
