"""Print to a string instead of a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console


def printed(show: Callable[[Console], object], width: int = 100) -> str:
    """Return what `show` prints to a console that is not a terminal and is `width` characters wide."""
    out = io.StringIO()
    show(Console(file=out, width=width, highlight=False))
    return out.getvalue()
