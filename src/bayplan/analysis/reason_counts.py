"""Reasons with their numbers of nodes, in sentences about causes."""

from __future__ import annotations

from collections.abc import Mapping

MAX_REASONS = 6
"""Maximum number of reasons with a number of nodes; the rest is one number."""


def reason_counts(counts: Mapping[str, int], prefix: str = "") -> str:
    """Return reasons with their numbers of nodes; the rest of many as one number, so that they add up."""
    shown = [f"{text.removeprefix(prefix)} ({count:,})" for text, count in counts.items()]
    rest = sum([*counts.values()][MAX_REASONS:])
    if rest:
        del shown[MAX_REASONS:]
        shown.append(f"other reasons ({rest:,})")
    return ", ".join(shown)


def largest_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return reasons and their numbers of nodes, the largest number first, and equal ones by name."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))
