"""Python's switch interval while the engine's thread runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

SWITCH_SECONDS = 0.0005
"""Python's switch interval: how long the engine's thread may delay other threads (measured in docs/simulator.md)."""


@contextlib.contextmanager
def short_switch_interval() -> Iterator[None]:
    """Use `SWITCH_SECONDS` while the context is active."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
