"""Python's cyclic garbage collector, run less often by programs that create many objects and few cycles.

A collection traverses all containers in memory. Loaded data and the records of a run stay in memory until the end:
traversing them again and again frees nothing and takes up to a tenth of a run. Reference counting, which frees nearly
everything, is not affected.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE_THRESHOLD = 1_000_000
"""The collector runs when this many more containers have been created than freed since the last collection."""


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Exclude the objects that exist when the block begins from collections within it.

    If the process had already frozen objects, all stay frozen at the end: Python can't release only some of them.
    """
    had_frozen = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if gc.isenabled() and not had_frozen:
            gc.unfreeze()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Run the collector rarely within a block, and exclude the objects that exist when the block begins.

    For programs around a run, and for the command line. The settings apply to the whole process and are restored at the
    end of the block, so that its garbage is collected; after `end_collections` the collector stays disabled. An inner
    block changes nothing.
    """
    thresholds = gc.get_threshold()
    if thresholds[0] >= RARE_THRESHOLD:
        yield
        return
    with frozen_objects():
        gc.set_threshold(RARE_THRESHOLD, *thresholds[1:])
        try:
            yield
        finally:
            gc.set_threshold(*thresholds)


def end_collections() -> None:
    """Disable the collector because the process is about to end, which frees its memory anyway."""
    gc.disable()
    gc.freeze()
