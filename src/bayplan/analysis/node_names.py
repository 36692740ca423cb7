"""The error about an unknown node: suggests the names that the given one abbreviates or misspells."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.units import format_choice
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name

LISTED = 5
"""Maximum number of names in a suggestion."""

MIN_PART_LENGTH = 3
"""Shorter texts are not completed, because they are part of too many names."""


def unknown_node(name: str, names: Sequence[str], *, wanted: str) -> InputError:
    """Return the error about a `--node` that is not one of `names`."""
    close = nearest_nodes(name, names)
    shown = [f"'{each}'" for each in close[:LISTED]]
    hint = format_choice(shown, more=max(len(close) - LISTED, 0)) if close else ""
    return InputError("--node", got=f"'{name}'", wanted=wanted, hint=hint)


def nearest_nodes(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that begin with a text, else those that contain it, else the most similar one, if any.

    Case is ignored.
    """
    part = name.lower()
    if len(part) >= MIN_PART_LENGTH:
        containing = [each for each in names if part in each.lower()]
        beginning = [each for each in containing if each.lower().startswith(part)]
        if found := beginning or containing:
            return found
    close = near_name(name, names)
    return [close] if close else []
