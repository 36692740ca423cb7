"""Structs that were sent with empty lists or maps, which Go distinguishes from null."""

from __future__ import annotations

from bayplan.base.plain_data import Plain

_CONTAINERS = (dict, list)


class Emptied(dict[str, object]):
    """A struct that was sent with empty lists or maps: Go omits these from its output, but shows them in messages.

    Attributes:
        empties: the empty values, by field name.
    """

    def __init__(self, document: Plain, empties: Plain) -> None:
        super().__init__(document)
        self.empties = empties


def has_empties(value: object) -> bool:
    """Return whether a decoded value contains a list or map that was sent empty, has no default, and is not in Go's output."""
    if isinstance(value, Emptied) and value.empties.keys() - value.keys():
        return True
    if not isinstance(value, _CONTAINERS):
        return False
    # A loop, and no calls for texts and numbers: `any` with a call for each item takes nearly twice the time.
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, _CONTAINERS) and has_empties(each):
            return True
    return False
