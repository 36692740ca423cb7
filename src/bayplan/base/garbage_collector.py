"""Python's cyclic garbage collector, relaxed for programs that create many objects and few cycles.

A collection traverses all live containers. Loaded data and the records of a run stay alive to the end, so traversing them
repeatedly frees nothing and costs up to a tenth of a run. Reference counting, which frees nearly everything, still works.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE_THRESHOLD = 1_000_000
"""Number of containers created, minus those freed, since the last collection that triggers one of the youngest generation."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely within the block, and ignore the objects that are alive when it begins.

    For hosts around a run, and for the command line. The settings apply to the whole process, and are restored at the end: then
    the garbage of the block is collected. If collections were ended within the block (`end_collections`), they stay disabled.
    A block within another block changes nothing: objects that are alive when the outer block begins are ignored.
    """
    thresholds = gc.get_threshold()
    if thresholds[0] >= RARE_THRESHOLD:
        yield
        return
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
