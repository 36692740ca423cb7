"""Settings of Hypothesis and of the garbage collector for all tests."""

from __future__ import annotations

import gc

from hypothesis import settings

# No test asserts a duration, and every run tries the same examples. `--hypothesis-profile search` tries new ones.
settings.register_profile("bayplan", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("bayplan")


def pytest_configure() -> None:
    """Make garbage collections rare.

    Some tests have a deadline of a second (plugins that never return), and a collection of everything that a test process
    has loaded may take half of that.
    """
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_finish() -> None:
    """Exempt all collected tests from garbage collections, of which servers and benchmarks request hundreds."""
    gc.collect()
    gc.freeze()
