"""Numbers, plurals and short names in the sentences about causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MAX_REASONS = 6
"""Maximum number of reasons with a number of nodes; the rest is one number."""


def counted(counts: Mapping[str, int], prefix: str = "") -> str:
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


def plural(noun: str, items: Sequence[str] | Sequence[int]) -> str:
    """Return a noun in the plural unless there is exactly one item."""
    return noun if len(items) == 1 else f"{noun}s"


def kinds_of(kind: str) -> str:
    """Return the plural of a kind: ``StorageClasses``."""
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def short_label(label: str) -> str:
    """Return the last part of a label's name: ``zone`` of ``topology.kubernetes.io/zone``."""
    return label.rpartition("/")[2]
