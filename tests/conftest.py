"""Settings of Hypothesis for all tests."""

from __future__ import annotations

from hypothesis import settings

# No time is asserted anywhere, and two runs of the tests try the same examples. `--hypothesis-profile search` tries new ones.
settings.register_profile("bayplan", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("bayplan")
