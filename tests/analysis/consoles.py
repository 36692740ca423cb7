"""Print to a text, as to a pipe."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console


def printed(show: Callable[[Console], object], width: int = 100) -> str:
    """Return the output of a function on a console that is no terminal."""
    out = io.StringIO()
    show(Console(file=out, width=width, highlight=False))
    return out.getvalue()
