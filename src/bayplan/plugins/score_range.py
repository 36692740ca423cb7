"""Loops over the scores of all rows that several plugins share: the range of raw scores, and raw scores by their distinct values.

Not a plugin.
"""

from __future__ import annotations

from bayplan.state.arrays import Flags, Ints

MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)
_MAX, _MIN = MAX_INT64, MIN_INT64


def smallest_score(raw: Ints, chosen: Flags, count: int) -> int:
    """Return the smallest raw score (int64) of the chosen rows (uint8) below `count`; the largest int64 if none is chosen."""
    smallest = _MAX
    for row in range(count):
        score = raw[row] if chosen[row] else _MAX
        smallest = score if score < smallest else smallest
    return smallest


def largest_score(raw: Ints, chosen: Flags, count: int) -> int:
    """Return the largest raw score of the chosen rows, likewise; the smallest int64 if there are none."""
    largest = _MIN
    for row in range(count):
        score = raw[row] if chosen[row] else _MIN
        largest = score if score > largest else largest
    return largest


def lowest(raw: Ints, count: int) -> int:
    """Return the smallest of the first `count` raw scores."""
    smallest = _MAX
    for row in range(count):
        smallest = raw[row] if raw[row] < smallest else smallest
    return smallest


def highest(raw: Ints, count: int) -> int:
    """Return the largest of the first `count` raw scores."""
    largest = _MIN
    for row in range(count):
        largest = raw[row] if raw[row] > largest else largest
    return largest


def look_up(raw: Ints, first: int, table: Ints, found: Ints, count: int) -> None:
    """Write ``table[raw - first]`` of the first `count` rows into `found`; all arrays are int64."""
    for row in range(count):
        found[row] = table[raw[row] - first]
