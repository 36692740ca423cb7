"""Group repeated problems: one line with the problem, its count, and the first places."""

from __future__ import annotations

import re
from collections.abc import Iterable

SHOWN_PLACES = 3
"""Maximum number of places in a line; the rest is counted."""

_INDEX = re.compile(r"\[\d+\]")


class ProblemGroups:
    """Groups problems, in the order of their first occurrence."""

    def __init__(self) -> None:
        self._groups: dict[object, tuple[str, str, list[str]]] = {}

    def add(self, key: object, alone: str, together: str, place: str) -> None:
        """Add a problem.

        Args:
            key: equal for all problems of a group.
            alone: the line to print if the group has only this problem.
            together: the line to print if the group has several problems; their number and places are appended.
            place: the location of the problem.
        """
        self._groups.setdefault(key, (alone, together, []))[2].append(place)

    def __len__(self) -> int:
        return len(self._groups)

    def lines(self) -> list[str]:
        """Return a line for each group."""
        return [
            alone if len(places) == 1 else f"{together} ({len(places):,} times: {_listed(places)})"
            for alone, together, places in self._groups.values()
        ]


def group_warnings(warnings: Iterable[tuple[str, str, str, str]]) -> ProblemGroups:
    """Group warnings about input.

    Args:
        warnings: tuples (where, what, problem, hint), as in `bayplan.formats.manifest.LoadWarning`.
    """
    groups = ProblemGroups()
    for where, what, problem, hint in warnings:
        text = f"{problem}; try {hint}" if hint else problem
        named, dollar, path = what.partition(" $")
        general = named.partition(" ")[0] + dollar + _INDEX.sub("[]", path)
        groups.add((general, text), f"{where} {what}: {text}", f"{general}: {text}", where)
    return groups


def group_messages(messages: Iterable[tuple[str, str, str]]) -> ProblemGroups:
    """Group messages that differ only in the name of the object.

    Args:
        messages: tuples (place, name, message).
    """
    groups = ProblemGroups()
    for place, name, message in messages:
        key = message.replace(name, "*") if name else message
        groups.add(key, f"{place}: {message}", message, place)
    return groups


def _listed(places: list[str]) -> str:
    more = len(places) - SHOWN_PLACES
    return ", ".join(places[:SHOWN_PLACES]) + (f" and {more:,} more" if more > 0 else "")
