"""Named snapshots of a cluster, and the initial state that a reset restores.

Taking and restoring a snapshot is instant.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.apiserver.store.store import Snapshot, Store
from bayplan.base.clock import Clock
from bayplan.base.errors import InputError

MOST = 100
MAX_NAME_LENGTH = 100


class NamedSnapshot(msgspec.Struct, frozen=True):
    """A named snapshot.

    Attributes:
        name: the name of the snapshot.
        taken_ns: the time at which it was taken, on the cluster's clock.
        revision: the revision of the store at that time.
        contents: the documents.
    """

    name: str
    taken_ns: int
    revision: int
    contents: Snapshot


class NamedSnapshots:
    """The snapshots of a store, oldest first. Use on the loop.

    Args:
        store: the store of documents.
        clock: the cluster's clock.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._kept: dict[str, NamedSnapshot] = {}
        self._first: Snapshot | None = None

    def all(self) -> Sequence[NamedSnapshot]:
        """Return all snapshots, oldest first."""
        return tuple(self._kept.values())

    def get(self, name: str) -> NamedSnapshot:
        """Return the snapshot with a name.

        Raises:
            InputError: no snapshot has this name.
        """
        found = self._kept.get(name)
        if found is None:
            known = ", ".join(self._kept) or "none"
            raise InputError("snapshot", got=f"'{name}'", wanted=f"one of the existing snapshots: {known}")
        return found

    def take(self, name: str) -> NamedSnapshot:
        """Take a snapshot of the current cluster.

        Raises:
            InputError: the name is taken or invalid, or there are too many snapshots.
        """
        if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable() or "/" in name or name in (".", ".."):
            # The name is a segment of the path of requests that restore or delete the snapshot.
            wanted = f"1 to {MAX_NAME_LENGTH} printable characters without '/', not only dots"
            raise InputError("snapshot name", got=repr(name), wanted=wanted)
        if name in self._kept:
            raise InputError(
                "snapshot name", wanted="a new name", got=f"'{name}', which already exists", hint="another name"
            )
        if len(self._kept) >= MOST:
            raise InputError(f"there are already {MOST} snapshots, the maximum", hint="to delete one")
        contents = self._store.snapshot()
        kept = self._kept[name] = NamedSnapshot(name, self._clock.now_ns(), contents.revision, contents)
        return kept

    def restore(self, name: str) -> None:
        """Restore a snapshot. Watches end; a new list returns the restored objects.

        Raises:
            InputError: no snapshot has this name.
        """
        self._store.restore(self.get(name).contents)

    def delete(self, name: str) -> None:
        """Delete a snapshot.

        Raises:
            InputError: no snapshot has this name.
        """
        self.get(name)
        del self._kept[name]

    def keep_first(self) -> None:
        """Take the unnamed snapshot that `reset` restores."""
        self._first = self._store.snapshot()

    def reset(self) -> None:
        """Restore the cluster to its state at the call of `keep_first`."""
        if self._first is not None:
            self._store.restore(self._first)
