"""A stored object (item), and one write of the store."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class Item(msgspec.Struct, gc=False, frozen=True):
    """A stored object. Immutable: each write creates a new item.

    Attributes:
        raw: the object as JSON, metadata first, without kind and apiVersion.
        revision: the revision of the write that created the item, which equals its ``metadata.resourceVersion``.
        namespace: the namespace, empty for cluster-scoped objects.
        name: the name of the object.
        uid: the uid of the object.
        labels: the labels of the object.
        fields: the values that field selectors can match, by path (``spec.nodeName``), except name and namespace.
    """

    raw: bytes
    revision: int
    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name, by which lists are sorted."""
        return (self.namespace, self.name)


class Write(msgspec.Struct, gc=False, frozen=True):
    """One write in the history.

    Attributes:
        type: ``ADDED``, ``MODIFIED`` or ``DELETED``.
        table: the name of the table.
        revision: the revision of the write.
        old: the previous item; None if the write added the object.
        new: the new item; for a deletion, the last state of the object with the revision of the deletion.
        frames: the encoded watch events of this write, by format; filled and shared by watches while the write is
            published.
    """

    type: str
    table: str
    revision: int
    old: Item | None
    new: Item
    frames: dict[object, bytes]
