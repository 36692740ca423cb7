"""Nouns after numbers: ``1 node``, ``2 nodes``."""

from __future__ import annotations


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 node``, ``12,000 nodes``."""
    return f"{count:,} {plural(noun, count)}"


def plural(noun: str, count: int) -> str:
    """Return a noun in the plural unless the count is 1: ``node``, ``nodes``, ``copies``, ``StorageClasses``."""
    if count == 1:
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch")) else f"{noun}s"


def is_or_are(count: int) -> str:
    """Return "is" for 1 and "are" for any other number."""
    return "is" if count == 1 else "are"
