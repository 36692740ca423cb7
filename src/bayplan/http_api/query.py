"""Parse query parameters strictly, with clear errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from bayplan.base.near_names import near_name
from bayplan.http_api.errors import RequestError

MAX_ROWS = 200
DEFAULT_ROWS = 50
DEADLINE_SECONDS = 0.2
"""Time limit for a list. If counting takes longer, counts are reported as "at least"."""

_LARGEST = 2**53


class Deadline:
    """A time limit that starts when the object is created.

    Args:
        seconds: the time limit.
    """

    def __init__(self, seconds: float = DEADLINE_SECONDS) -> None:
        self._end = monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return monotonic() >= self._end


class Query:
    """The query parameters of a request.

    Args:
        values: the values by name. A repeated parameter has only one value.
        known: the names that the operation knows. Others are rejected, so that a misspelt filter does not match
            everything.

    Raises:
        RequestError: there is an unknown parameter.
    """

    def __init__(self, values: Mapping[str, str], known: Sequence[str]) -> None:
        self._values = values
        for name in values:
            if name not in known:
                wanted = f"one of {', '.join(known)}" if known else "no parameters"
                raise RequestError(400, "query", got=f"'{name}'", wanted=wanted, hint=near_name(name, known))

    def text(self, name: str, default: str = "") -> str:
        """Return the value of a parameter as text."""
        return self._values.get(name, default)

    def one_of(self, name: str, allowed: Sequence[str], default: str = "") -> str:
        """Return the value of a parameter, which must be among the allowed values; the default if it is absent or empty."""
        value = self._values.get(name) or default
        if value and value not in allowed:
            wanted = f"one of {', '.join(allowed)}"
            raise RequestError(400, name, got=f"'{value}'", wanted=wanted, hint=near_name(value, allowed))
        return value

    def number(self, name: str, default: int, *, least: int = 0, most: int = _LARGEST) -> int:
        """Return the value of a parameter as an integer; the default if it is absent or empty."""
        text = self._values.get(name, "")
        if not text:
            return default
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 18 and least <= int(text) <= most):
            span = f"from {least:,}" if most >= _LARGEST else f"from {least:,} to {most:,}"
            raise RequestError(400, name, got=f"'{text}'", wanted=f"a whole number {span}")
        return int(text)

    def maybe_number(self, name: str) -> int | None:
        """Return the value of a parameter as a non-negative integer; None if it is absent or empty."""
        return self.number(name, 0) if self._values.get(name) else None

    def switch(self, name: str) -> bool:
        """Return whether a boolean parameter is true; False if it is absent."""
        return self.one_of(name, ("1", "0", "true", "false"), "0") in ("1", "true")

    def page(self, most: int = MAX_ROWS, default: int = DEFAULT_ROWS) -> tuple[int, int]:
        """Return the parameters ``offset`` and ``limit``."""
        return self.number("offset", 0), self.number("limit", default, least=1, most=most)

    def sort(self, allowed: Sequence[str], default: str) -> tuple[str, bool]:
        """Return (key, descending) of the parameter ``sort``; ``-cpu`` sorts by cpu, descending."""
        text = self._values.get("sort") or default
        name = text.removeprefix("-")
        if name not in allowed:
            wanted = f"one of {', '.join(dict.fromkeys(allowed))}, optionally with '-' before it"
            raise RequestError(400, "sort", got=f"'{text}'", wanted=wanted, hint=near_name(name, allowed))
        return name, text.startswith("-")
