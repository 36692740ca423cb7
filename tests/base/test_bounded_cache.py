"""Caches with a maximum number of entries."""

from __future__ import annotations

import pytest

from bayplan.base.bounded_cache import BoundedCache, SeenKeys


@pytest.mark.parametrize(
    ("max_entries", "stored", "want"),
    [
        pytest.param(3, "abc", "abc", id="a cache that is exactly full"),
        pytest.param(3, "abcd", "bcd", id="the oldest entry is dropped"),
        pytest.param(3, "abca", "abc", id="a known key drops nothing"),
        pytest.param(3, "abcaad", "bcd", id="a stored key keeps its age"),
        pytest.param(1, "ab", "b", id="one entry"),
    ],
)
def test_the_oldest_entries_are_dropped_above_the_limit(max_entries: int, stored: str, want: str) -> None:
    cache: BoundedCache[str, str] = BoundedCache(max_entries)
    assert [cache.put(key, key.upper()) for key in stored] == [*stored.upper()]
    assert list(cache) == [*want]


def test_a_full_large_cache_drops_several_entries() -> None:
    cache: BoundedCache[int, None] = BoundedCache(1024)
    for number in range(1025):
        cache.put(number, None)
    assert (next(iter(cache)), len(cache)) == (4, 1021)


def test_seen_keys_forgets_all_but_the_most_recent_keys() -> None:
    seen = SeenKeys(2)
    assert [seen.is_new(key) for key in ("a", "a", "b", "c", "a")] == [True, False, True, True, True]
