"""Python's cyclic garbage collector, relaxed for programs that create many objects and few cycles.

A collection walks over every container that is alive. What was loaded and what a run keeps is alive to the end, so looking at it
again and again finds nothing and costs up to a tenth of a run. Reference counting, which frees nearly everything, still works.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE_THRESHOLD = 1_000_000
"""Number of containers created, minus those freed, since the last collection that triggers one of the youngest generation."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect seldom within the block, and don't look at what is alive when it begins.

    For hosts around a run and for the command line. What is set here holds for the whole process, and is as before at the end: then
    what the block left behind is collected. Where collections were ended within the block (`end_collections`), they stay so.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(RARE_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        if gc.isenabled():
            gc.set_threshold(*thresholds)
            gc.unfreeze()


def end_collections() -> None:
    """Disable collection: the process is about to end, which frees its memory."""
    gc.disable()
    gc.freeze()
