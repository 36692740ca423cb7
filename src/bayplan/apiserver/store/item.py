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
        revision: of the write that made it; equal to its ``metadata.resourceVersion``.
        namespace: empty for cluster-scoped documents.
        name: of the object.
        uid: of the object.
        labels: of the object.
        fields: values for field selectors, by name (``spec.nodeName``); without name and namespace.
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
    """One write, as history keeps it.

    Attributes:
        type: ``ADDED``, ``MODIFIED`` or ``DELETED``.
        table: name of the table.
        revision: of the write.
        old: the item before, None when added.
        new: the item after; for a deletion the last document, with the revision of the deletion.
        frames: encoded forms for watchers, by a key of theirs; shared by all who watch alike.
    """

    type: str
    table: str
    revision: int
    old: Item | None
    new: Item
    frames: dict[object, bytes]
