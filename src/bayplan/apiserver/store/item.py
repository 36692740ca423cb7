"""One stored document, and one write of the store."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class Item(msgspec.Struct, gc=False, frozen=True):
    """A stored document. Immutable; a new revision is a new item.

    Attributes:
        raw: the document as JSON, without kind and apiVersion, metadata first.
        revision: the revision of the write that created the item; equal to its ``metadata.resourceVersion``.
        namespace: empty for cluster-scoped documents.
        name: the name of the object.
        uid: the uid of the object.
        labels: the labels of the object.
        fields: the values for field selectors, by name (``spec.nodeName``); without name and namespace.
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
        """Namespace and name: the order of lists."""
        return (self.namespace, self.name)


class Write(msgspec.Struct, gc=False, frozen=True):
    """One write in the history.

    Attributes:
        type: ``ADDED``, ``MODIFIED`` or ``DELETED``.
        table: name of the table.
        revision: the revision of the write.
        old: the item before; None if it was added.
        new: the item after; for a deletion the last document, with the revision of the deletion.
        frames: the encoded forms for watches, by their key, while the write is published; shared by all equal watches.
    """

    type: str
    table: str
    revision: int
    old: Item | None
    new: Item
    frames: dict[object, bytes]
