"""Query parameters: numbers, names and switches, parsed strictly and with clear errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic

from bayplan.base.near_names import near_name
from bayplan.http_api.refusal import Refusal

MAX_ROWS = 200
DEFAULT_ROWS = 50
DEADLINE_SECONDS = 0.2
"""Time limit for a list; counts that are incomplete by then are reported as "at least"."""

_LARGEST = 2**53


class Deadline:
    """When to stop counting.

    Args:
        seconds: the time limit, from creation.
    """

    def __init__(self, seconds: float = DEADLINE_SECONDS) -> None:
        self._end = monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return monotonic() >= self._end


class Query:
    """The parameters of a request.

    Args:
        values: the values by name; one for repeated parameters.
        known: the known names; others are rejected, so that a misspelt filter does not match everything.

    Raises:
        Refusal: there is an unknown parameter.
    """

    def __init__(self, values: Mapping[str, str], known: Sequence[str]) -> None:
        self._values = values
        for name in values:
            if name not in known:
                wanted = f"one of {', '.join(known) or 'none'}"
                raise Refusal(400, "query", got=f"'{name}'", wanted=wanted, hint=near_name(name, known))

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        return self._values.get(name, default)

    def one_of(self, name: str, allowed: Sequence[str], default: str = "") -> str:
        """Return one of some words; the default if it is absent or empty."""
        value = self._values.get(name) or default
        if value and value not in allowed:
            raise Refusal(400, name, got=f"'{value}'", wanted=f"one of {', '.join(allowed)}")
        return value

    def number(self, name: str, default: int, *, least: int = 0, most: int = _LARGEST) -> int:
        """Return an integer."""
        text = self._values.get(name, "")
        if not text:
            return default
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 18 and least <= int(text) <= most):
            span = f"from {least:,}" if most >= _LARGEST else f"from {least:,} to {most:,}"
            raise Refusal(400, name, got=f"'{text}'", wanted=f"a whole number {span}")
        return int(text)

    def maybe_number(self, name: str) -> int | None:
        """Return a non-negative integer, or None."""
        return self.number(name, 0) if self._values.get(name) else None

    def switch(self, name: str) -> bool:
        """Return whether a switch is on."""
        return self.one_of(name, ("1", "0", "true", "false"), "0") in ("1", "true")

    def page(self, most: int = MAX_ROWS, default: int = DEFAULT_ROWS) -> tuple[int, int]:
        """Return offset and limit."""
        return self.number("offset", 0), self.number("limit", default, least=1, most=most)

    def sort(self, allowed: Sequence[str], default: str) -> tuple[str, bool]:
        """Return the sort field, and whether the order is descending (``sort=-cpu``)."""
        text = self._values.get("sort") or default
        name = text.removeprefix("-")
        if name not in allowed:
            raise Refusal(
                400, "sort", got=f"'{text}'", wanted=f"one of {', '.join(allowed)}, with or without '-' before it"
            )
        return name, text.startswith("-")
