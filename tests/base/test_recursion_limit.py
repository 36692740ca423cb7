"""The recursion limit of the process, raised by several threads at once."""

from __future__ import annotations

import sys
from threading import Barrier, Thread

import pytest

from bayplan.base.recursion_limit import DEEP_RECURSION_LIMIT, RECURSION_LIMIT


def descend(levels: int) -> int:
    return 0 if levels == 0 else 1 + descend(levels - 1)


def test_a_raised_limit_allows_deep_recursion_and_is_restored() -> None:
    before = sys.getrecursionlimit()
    with RECURSION_LIMIT.raised():
        assert descend(before + 1_000) == before + 1_000
        with RECURSION_LIMIT.raised():
            assert RECURSION_LIMIT.users == 2
        assert descend(before + 1_000) == before + 1_000
    assert (sys.getrecursionlimit(), RECURSION_LIMIT.users) == (before, 0)


def test_the_limit_stays_raised_until_the_last_thread_leaves() -> None:
    before = sys.getrecursionlimit()
    both_in, one_out = Barrier(2, timeout=20), Barrier(2, timeout=20)
    reached: list[int] = []

    def first() -> None:
        with RECURSION_LIMIT.raised():
            both_in.wait()
        one_out.wait()

    def second() -> None:
        with RECURSION_LIMIT.raised():
            both_in.wait()
            one_out.wait()
            reached.append(descend(before + 1_000))

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert reached == [before + 1_000]
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    "limit", [pytest.param(DEEP_RECURSION_LIMIT + 500, id="higher"), pytest.param(3_000, id="lower")]
)
def test_a_limit_set_by_other_code_is_preserved(limit: int) -> None:
    before = sys.getrecursionlimit()
    try:
        with RECURSION_LIMIT.raised():
            sys.setrecursionlimit(limit)
        assert sys.getrecursionlimit() == limit
    finally:
        sys.setrecursionlimit(before)


def test_a_higher_limit_is_not_lowered() -> None:
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(DEEP_RECURSION_LIMIT * 2)
        with RECURSION_LIMIT.raised():
            assert sys.getrecursionlimit() == DEEP_RECURSION_LIMIT * 2
        assert sys.getrecursionlimit() == DEEP_RECURSION_LIMIT * 2
    finally:
        sys.setrecursionlimit(before)
