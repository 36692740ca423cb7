"""Format reasons with their numbers of nodes, for sentences about causes."""

from __future__ import annotations

from collections.abc import Mapping

MAX_REASONS = 6
"""Maximum number of reasons listed one by one; the rest is summed."""


def reason_counts(counts: Mapping[str, int], prefix: str = "") -> str:
    """Return reasons with their numbers of nodes: ``taint a (3), cordoned (1)``. `prefix` is removed from each reason.

    Reasons after the first `MAX_REASONS` become ``other reasons (N)``, so that the numbers still add up; a single one is
    listed itself.
    """
    shown = [f"{text.removeprefix(prefix)} ({count:,})" for text, count in counts.items()]
    if len(shown) > MAX_REASONS + 1:
        rest = sum([*counts.values()][MAX_REASONS:])
        shown[MAX_REASONS:] = [f"other reasons ({rest:,})"]
    return ", ".join(shown)


def largest_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return (reason, number of nodes) pairs by descending number; equal numbers are ordered by reason."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))
