"""The items of one resource, sorted as in lists, and the recent writes to them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping

from bayplan.apiserver.store.item import Item, Write

Key = tuple[str, str]
_AFTER = "\U0010ffff"


class Table:
    """The items of one resource by key.

    Copying is lazy: `freeze` returns the maps, and the next write copies them first.

    Attributes:
        name: the name of the table, e.g. ``pods`` or ``apps/deployments``.
        log: the recent writes, oldest first.
        published: the revision of the last published write.
        version: increases with every write, for caches of data derived from the items.
    """

    __slots__ = ("_items", "_keys", "_shared", "log", "name", "published", "version")

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = 0
        self.published = 0
        self.log: deque[Write] = deque()
        self._items: dict[Key, Item] = {}
        self._keys: list[Key] = []
        self._shared = False

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Key) -> Item | None:
        """Return an item, or None if it does not exist."""
        return self._items.get(key)

    def put(self, item: Item) -> None:
        """Add an item, or replace the item with the same key."""
        self._own()
        key = (item.namespace, item.name)
        if key not in self._items:
            keys = self._keys
            if keys and key < keys[-1]:
                insort(keys, key)
            else:
                keys.append(key)
        self._items[key] = item

    def remove(self, key: Key) -> None:
        """Remove an existing item."""
        self._own()
        del self._items[key]
        del self._keys[bisect_left(self._keys, key)]

    def between(self, namespace: str, start: str) -> list[Item]:
        """Return the items from a start key on, sorted by key.

        Args:
            namespace: the namespace, or an empty string for all.
            start: the first name; across namespaces ``namespace/name``; empty for the beginning.
        """
        keys, items = self._keys, self._items
        if namespace:
            first = bisect_left(keys, (namespace, start))
            last = bisect_left(keys, (namespace, _AFTER), first)
        elif start:
            space, _, name = start.rpartition("/")
            first, last = bisect_left(keys, (space, name)), len(keys)
        else:
            return [items[key] for key in keys]
        return [items[key] for key in keys[first:last]]

    def items(self) -> Iterator[Item]:
        """Return all items in no particular order."""
        return iter(self._items.values())

    def freeze(self) -> tuple[Mapping[Key, Item], list[Key]]:
        """Return the current items and keys in constant time. Later writes do not change them."""
        self._shared = True
        return self._items, self._keys

    def thaw(self, frozen: tuple[Mapping[Key, Item], list[Key]]) -> None:
        """Replace the contents with the result of `freeze`, in constant time."""
        items, self._keys = frozen
        self._items = items  # type: ignore[assignment]  # Shared: the next write copies it first.
        self._shared = True
        self.version += 1

    def _own(self) -> None:
        self.version += 1
        if self._shared:
            self._items = dict(self._items)
            self._keys = list(self._keys)
            self._shared = False
