"""Recorded results that every build must reproduce, on every processor."""

from __future__ import annotations

RESULTS_HASHES = {2_000: -4148501564501349141, 1_000_000: 8716476977685912222}
"""By count: `bayplan.testing.go_arithmetic_check.results_hash`. Recorded from plain Python and gcc on amd64, zig on arm64."""
