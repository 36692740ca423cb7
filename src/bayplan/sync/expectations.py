"""What was done here and has not been seen here yet: such objects are left alone until the watch has told of it."""

from __future__ import annotations

from bayplan.sync.followed_kinds import ObjectRef


class Expectations:
    """Creations and deletions that were carried out, until they are seen, or it is known that they never will be."""

    def __init__(self) -> None:
        # Uid and revision of what was made; uids of what was deleted and is still seen.
        self._made: dict[ObjectRef, tuple[str, int]] = {}
        self._deleted: dict[ObjectRef, str] = {}
        # Up to which revision all was told, by kind; what was gone before the answer to its creation came: uids.
        self._reached: dict[str, int] = {}
        self._gone_early: set[str] = set()

    def __len__(self) -> int:
        return len(self._made) + len(self._deleted)

    def __contains__(self, ref: ObjectRef) -> bool:
        return ref in self._made or ref in self._deleted

    def made(self, ref: ObjectRef, uid: str, revision: int) -> None:
        """Expect to see an object that was made, unless it is known to have gone since."""
        if uid not in self._gone_early and revision > self._reached.get(ref.plural, -1):
            self._made[ref] = (uid, revision)

    def deleted(self, ref: ObjectRef, uid: str) -> None:
        """Expect not to see an object any more."""
        self._deleted[ref] = uid

    def seen(self, ref: ObjectRef, uid: str) -> None:
        """Take that an object is here."""
        self._arrived(ref, uid)
        if self._deleted.get(ref, uid) != uid:
            del self._deleted[ref]

    def gone(self, ref: ObjectRef, uid: str, *, is_being_made: bool) -> None:
        """Take that an object is gone.

        Args:
            ref, uid: which.
            is_being_made: whether the answer to a creation of that name is yet to come: it may be that of this object.
        """
        if is_being_made:
            self._gone_early.add(uid)
        self._arrived(ref, uid)
        if self._deleted.get(ref) == uid:
            del self._deleted[ref]

    def _arrived(self, ref: ObjectRef, uid: str) -> None:
        expected = self._made.get(ref)
        if expected is not None and expected[0] == uid:
            del self._made[ref]

    def reached(self, plural: str, revision: int) -> list[tuple[ObjectRef, str]]:
        """Take that all was told up to a revision; return names and uids of what came and went unseen before it."""
        self._reached[plural] = revision
        missed = [(ref, made) for ref, made in self._made.items() if ref.plural == plural and made[1] <= revision]
        return [(ref, uid) for ref, (uid, _) in missed]

    def drop(self, ref: ObjectRef) -> None:
        """Expect nothing of an object that is not wanted any more."""
        self._made.pop(ref, None)

    def nothing_is_being_made(self) -> None:
        """Take that no answer to a creation is yet to come."""
        self._gone_early.clear()

    def clear(self) -> None:
        """Expect nothing: this is another cluster."""
        self._made.clear()
        self._deleted.clear()
        self._reached.clear()
