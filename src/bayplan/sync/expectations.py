"""Local writes that the local watch has not reported yet. Until it does, their objects are not reconciled."""

from __future__ import annotations

from bayplan.sync.followed_kinds import ObjectRef


class Expectations:
    """Executed creations and deletions, until they are observed or known to be missed."""

    def __init__(self) -> None:
        # Uid and revision of created objects; uids of deleted objects that are still observed.
        self._made: dict[ObjectRef, tuple[str, int]] = {}
        self._deleted: dict[ObjectRef, str] = {}
        # The revision up to which everything is known, by kind; uids of objects deleted before the response to their creation.
        self._reached: dict[str, int] = {}
        self._deleted_early: set[str] = set()

    def __len__(self) -> int:
        return len(self._made) + len(self._deleted)

    def __contains__(self, ref: ObjectRef) -> bool:
        return ref in self._made or ref in self._deleted

    def expect_creation(self, ref: ObjectRef, uid: str, revision: int) -> None:
        """Expect that a created object will be observed, unless it is known that it was deleted since."""
        if uid not in self._deleted_early and revision > self._reached.get(ref.plural, -1):
            self._made[ref] = (uid, revision)

    def expect_deletion(self, ref: ObjectRef, uid: str) -> None:
        """Expect that the deletion of an object will be observed."""
        self._deleted[ref] = uid

    def observed(self, ref: ObjectRef, uid: str) -> None:
        """Record that an object was observed."""
        self._arrived(ref, uid)
        if self._deleted.get(ref, uid) != uid:
            del self._deleted[ref]

    def observed_deletion(self, ref: ObjectRef, uid: str, *, creation_pending: bool) -> None:
        """Record that an object is deleted.

        Args:
            ref, uid: the reference and uid of the object.
            creation_pending: whether the response to the creation of an object with that name is pending; it may be
                this object.
        """
        if creation_pending:
            self._deleted_early.add(uid)
        self._arrived(ref, uid)
        if self._deleted.get(ref) == uid:
            del self._deleted[ref]

    def _arrived(self, ref: ObjectRef, uid: str) -> None:
        expected = self._made.get(ref)
        if expected is not None and expected[0] == uid:
            del self._made[ref]

    def observed_revision(self, plural: str, revision: int) -> list[tuple[ObjectRef, str]]:
        """Record that everything up to a revision is known.

        Return references and uids of the created objects that were never observed.
        """
        self._reached[plural] = revision
        missed = [(ref, made) for ref, made in self._made.items() if ref.plural == plural and made[1] <= revision]
        return [(ref, uid) for ref, (uid, _) in missed]

    def drop(self, ref: ObjectRef) -> None:
        """Drop the expected creation of an object that the source removed or replaced.

        An expected deletion stays.
        """
        self._made.pop(ref, None)

    def no_creation_pending(self) -> None:
        """Record that no response to a creation is pending."""
        self._deleted_early.clear()

    def clear(self) -> None:
        """Drop all expectations, because the target is now a different cluster."""
        self._made.clear()
        self._deleted.clear()
        self._reached.clear()
