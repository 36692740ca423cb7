"""Structs that were sent with empty lists or maps, which Go distinguishes from null."""

from __future__ import annotations

from bayplan.base.plain_data import Plain


class Emptied(dict[str, object]):
    """A struct that was sent with empty lists or maps: Go omits these from its output, but shows them in messages.

    Attributes:
        empties: the empty values, by field name.
    """

    def __init__(self, document: Plain, empties: Plain) -> None:
        super().__init__(document)
        self.empties = empties


def without_empties(value: object) -> object:
    """Return a copy of a value in which structs are replaced by plain dictionaries, like those read from JSON."""
    if type(value) is dict or isinstance(value, Emptied):
        return {name: without_empties(item) for name, item in value.items()}
    if type(value) is list:
        return [without_empties(item) for item in value]
    return value
