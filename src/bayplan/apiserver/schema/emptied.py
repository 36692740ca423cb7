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
