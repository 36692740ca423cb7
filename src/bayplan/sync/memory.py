"""The sync state: the state of each object of the source, by its uid. It survives restarts and local deletions.

It is stored in the target as ConfigMaps of a separate namespace, so it is as durable as the target. The uid of an
object determines which of 256 ConfigMaps has its entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from hashlib import blake2b

from bayplan.base.plain_data import Document, part

MEMORY_NAMESPACE = "bayplan-sync"
"""The namespace of the ConfigMaps."""

STATE = "state"
"""The ConfigMap whose field ``began`` marks that the sync has begun. It is written after all other ConfigMaps."""


class Known(Enum):
    """The state of an object of the source.

    Attributes:
        KEEPS: it existed when the sync began (and had a node if it is a pod), and is still to be created locally.
        KEPT: it was created locally in its initial state.
        MADE: it was created locally.
        FREE: it was created locally; it is a claim or a volume that the target binds.
        DELETED: it was created locally, and then deleted locally, not because of the source.
    """

    KEEPS = "keeps"
    KEPT = "kept"
    MADE = "made"
    FREE = "free"
    DELETED = "deleted"


class Memory:
    """The states by uid, and the ConfigMaps that must be written.

    Attributes:
        began: whether the initial state of the source is known.
        is_urgent: whether an unsaved entry could not be derived again, because it is about a local deletion.
    """

    def __init__(self) -> None:
        self.began = False
        self.is_urgent = False
        self._known: dict[str, Known] = {}
        self._buckets: dict[str, dict[str, None]] = {}
        self._changed: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, uid: str) -> Known | None:
        """Return the state of an object, or None if it is unknown."""
        return self._known.get(uid)

    def set(self, uid: str, known: Known) -> None:
        """Set the state of an object."""
        if self._known.get(uid) is known:
            return
        self._known[uid] = known
        self.is_urgent |= known is Known.DELETED
        bucket = bucket_of(uid)
        self._buckets.setdefault(bucket, {})[uid] = None
        self._changed[bucket] = None

    def forget(self, uid: str) -> None:
        """Forget an object that was removed from the source."""
        if self._known.pop(uid, None) is not None:
            bucket = bucket_of(uid)
            del self._buckets[bucket][uid]
            self._changed[bucket] = None

    def clear(self) -> None:
        """Forget everything, including that the sync has begun."""
        self.began = False
        self._changed.update(dict.fromkeys(bucket for bucket, uids in self._buckets.items() if uids))
        self._known.clear()
        self._buckets.clear()

    def uids(self) -> list[str]:
        """Return the uids of all entries."""
        return list(self._known)

    @property
    def has_changes(self) -> bool:
        """Whether anything must be written."""
        return bool(self._changed)

    def take_changes(self) -> list[Document]:
        """Return the ConfigMaps that must be written. If the one with ``began`` is among them, it is the last."""
        changed, self._changed, self.is_urgent = self._changed, {}, False
        return [self._config_map(bucket) for bucket in changed]

    def mark_unwritten(self, documents: Iterable[Document], *, urgent: bool) -> None:
        """Mark changes as unwritten again after a failed write, and as `urgent` if they were."""
        for document in documents:
            self.is_urgent |= urgent
            self._changed[str(part(document, "metadata")["name"])] = None

    def begin(self) -> None:
        """Record that the initial state of the source is known."""
        self.began = True
        self._changed[STATE] = None

    def load(self, documents: Iterable[Document]) -> None:
        """Read the ConfigMaps of an earlier run; unknown entries of another release are ignored."""
        meanings = {known.value: known for known in Known}
        for document in documents:
            name = str(part(document, "metadata").get("name", ""))
            data = part(document, "data")
            if name == STATE:
                self.began = data.get("began") == "true"
                continue
            for uid, value in data.items():
                if value in meanings:
                    self._known[uid] = meanings[str(value)]
                    self._buckets.setdefault(bucket_of(uid), {})[uid] = None

    def _config_map(self, bucket: str) -> Document:
        if bucket == STATE:
            data: Document = {"began": "true"}
        else:
            data = dict(self._entries(bucket))
        metadata: Document = {"name": bucket, "namespace": MEMORY_NAMESPACE}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    def _entries(self, bucket: str) -> Iterator[tuple[str, object]]:
        for uid in self._buckets.get(bucket, ()):
            yield uid, self._known[uid].value


def bucket_of(uid: str) -> str:
    """Return the name of the ConfigMap that contains the entry of a uid.

    It is derived from a hash, because recordings may contain any uids.
    """
    return f"known-{blake2b(uid.encode(), digest_size=1).hexdigest()}"
