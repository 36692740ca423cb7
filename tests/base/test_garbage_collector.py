"""The garbage collector is disabled within a block, and restored afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from bayplan.base.garbage_collector import RARE_THRESHOLD, frozen_objects, rare_collections


@pytest.fixture(autouse=True)
def _nothing_is_frozen() -> Iterator[None]:
    """Release what the test process has frozen, for one test."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


def test_rare_collections_raises_the_threshold_and_freezes_existing_objects() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()

    with rare_collections():
        assert gc.get_threshold() == (RARE_THRESHOLD, *before[1:])
        assert gc.get_freeze_count() > frozen

    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_nested_blocks_leave_the_settings_to_the_outer_block() -> None:
    with rare_collections():
        before, frozen = gc.get_threshold(), gc.get_freeze_count()
        with rare_collections():
            assert gc.get_threshold() == before
        assert gc.get_threshold() == before
        assert 0 < gc.get_freeze_count() <= frozen


def test_an_exception_restores_the_settings() -> None:
    before = gc.get_threshold()

    with pytest.raises(ValueError, match="of the block"), rare_collections():
        raise ValueError("of the block")

    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_objects_that_the_process_has_frozen_stay_frozen() -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    with frozen_objects():
        made: list[list[int]] = [[] for _ in range(1000)]
    assert gc.get_freeze_count() >= before
    assert made
    with rare_collections():
        pass
    assert gc.get_freeze_count() >= before


def test_exit_handlers_run_after_end_collections() -> None:
    program = (
        "import atexit, gc\n"
        "from bayplan.base.garbage_collector import end_collections\n"
        "atexit.register(print, 'said at exit')\n"
        "end_collections()\n"
        "assert not gc.isenabled()\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "said at exit\n"


def test_end_collections_within_a_block_disables_collection_permanently() -> None:
    program = (
        "import gc\n"
        "from bayplan.base.garbage_collector import end_collections, rare_collections\n"
        "told = []\n"
        "with rare_collections():\n"
        "    made = [[] for _ in range(100_000)]\n"
        "    gc.callbacks.append(lambda phase, info: told.append(phase))\n"
        "    end_collections()\n"
        "print(told, gc.isenabled(), gc.get_freeze_count() > 100_000)\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "[] False True\n"
