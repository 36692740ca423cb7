"""Objects that depend on the local uid of another object, to be reconciled when it changes."""

from __future__ import annotations

from bayplan.sync.followed_kinds import ObjectRef
from bayplan.sync.translation import LocalObjects


class Dependents:
    """Dependents by the object whose uid they use."""

    def __init__(self) -> None:
        self._users: dict[ObjectRef, dict[ObjectRef, None]] = {}

    def asking(self, user: ObjectRef, here: LocalObjects) -> LocalObjects:
        """Return `here` for an object's translation, with every queried uid recorded as a dependency."""
        return _Asking(self._users, user, here)

    def take(self, ref: ObjectRef) -> list[ObjectRef]:
        """Remove and return the dependents of an object whose uid has changed; reconciling them records them again."""
        return list(self._users.pop(ref, ()))


class _Asking:
    """See `bayplan.sync.translation.LocalObjects`.

    Args:
        users: where the dependency is recorded.
        user: the translated object.
        here: the local objects.
    """

    def __init__(self, users: dict[ObjectRef, dict[ObjectRef, None]], user: ObjectRef, here: LocalObjects) -> None:
        self._users = users
        self._user = user
        self._here = here

    def uid_of(self, ref: ObjectRef, source_uid: str) -> str | None:
        """See `LocalObjects`."""
        self._users.setdefault(ref, {})[self._user] = None
        return self._here.uid_of(ref, source_uid)

    def keeps_node(self, source_uid: str) -> bool:
        """See `LocalObjects`."""
        return self._here.keeps_node(source_uid)
