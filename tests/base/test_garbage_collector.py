"""The garbage collector is disabled within a block, and restored afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from bayplan.base.garbage_collector import RARE_THRESHOLD, rare_collections


def test_collections_are_rare_within_the_block_and_what_was_alive_is_left_alone() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()

    with rare_collections():
        assert gc.get_threshold() == (RARE_THRESHOLD, *before[1:])
        assert gc.get_freeze_count() > frozen

    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_a_block_within_a_block_leaves_both_settings_to_the_outer_one() -> None:
    with rare_collections():
        before, frozen = gc.get_threshold(), gc.get_freeze_count()
        with rare_collections():
            assert gc.get_threshold() == before
        assert gc.get_threshold() == before
        assert 0 < gc.get_freeze_count() <= frozen


def test_an_exception_in_the_block_changes_nothing_about_that() -> None:
    before = gc.get_threshold()

    with pytest.raises(ValueError, match="of the block"), rare_collections():
        raise ValueError("of the block")

    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_a_process_that_is_about_to_end_still_ends_in_order() -> None:
    program = (
        "import atexit, gc\n"
        "from bayplan.base.garbage_collector import end_collections\n"
        "atexit.register(print, 'said at exit')\n"
        "end_collections()\n"
        "assert not gc.isenabled()\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "said at exit\n"


def test_collections_that_were_ended_within_a_block_stay_so() -> None:
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
