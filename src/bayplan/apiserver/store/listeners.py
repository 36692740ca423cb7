"""Listeners to the writes of one table: to all writes, or only to writes of items with a certain value.

If fifty watches select one label value each, only the watches of the written item's values are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bayplan.apiserver.store.item import Item, Write

Listener = Callable[[Write], None]


class Aspect(NamedTuple):
    """A value that every item relevant to a listener has, before or after a write.

    Attributes:
        source: the kind of value: ``label``, ``field``, ``name`` or ``namespace``.
        key: the key of the label or the path of the field; empty otherwise.
        value: the required value.
    """

    source: str
    key: str
    value: str


class Listeners:
    """The listeners to the writes of one table."""

    def __init__(self) -> None:
        self._all: dict[int, Listener] = {}
        self._by_value: dict[tuple[str, str], dict[str, dict[int, Listener]]] = {}

    def add(self, token: int, listener: Listener, aspect: Aspect | None) -> None:
        """Add a listener to all writes, or only to writes of items that match the aspect before or after."""
        if aspect is None:
            self._all[token] = listener
        else:
            values = self._by_value.setdefault((aspect.source, aspect.key), {})
            values.setdefault(aspect.value, {})[token] = listener

    def discard(self, token: int) -> None:
        """Remove the listener with this token, if it exists."""
        if self._all.pop(token, None) is not None:
            return
        for place, values in self._by_value.items():
            for value, found in values.items():
                if found.pop(token, None) is not None:
                    if not found:
                        del values[value]
                    if not values:
                        del self._by_value[place]
                    return

    def interested_in(self, write: Write) -> list[tuple[int, Listener]]:
        """Return the listeners to all writes, and those whose aspect the item matches before or after, with their tokens."""
        found = list(self._all.items())
        for (source, key), values in self._by_value.items():
            after = _value(write.new, source, key)
            before = after if write.old is None else _value(write.old, source, key)
            found += values.get(after, {}).items()
            if before != after:
                found += values.get(before, {}).items()
        return found


def _value(item: Item, source: str, key: str) -> str:
    """Return an item's value for an aspect, or "" if it has none. No aspect has the value ""."""
    if source == "label":
        return item.labels.get(key, "")
    if source == "field":
        return item.fields.get(key, "")
    return item.name if source == "name" else item.namespace
