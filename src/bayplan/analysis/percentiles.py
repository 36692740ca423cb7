"""Percentiles of whole numbers by nearest rank: always one of the numbers, never in between, so the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(ascending: Sequence[int], percent: int) -> int:
    """Return the smallest number such that at least `percent` percent of all are not above it. `ascending` must not be empty."""
    rank = -(-len(ascending) * percent // 100)
    return ascending[max(rank, 1) - 1]
