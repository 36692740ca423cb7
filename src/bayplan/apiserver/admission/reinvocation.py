"""Reinvocation of mutating hooks if the object changes after their first call.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy
"""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.base.plain_data import Document


class Reinvocation:
    """Decides which hooks run in the second of the two rounds of a request.

    Policies and webhooks have separate instances.

    Attributes:
        is_second: whether the second round is running.
    """

    __slots__ = ("_asked", "_due", "_last_output", "is_second")

    def __init__(self) -> None:
        self.is_second = False
        self._asked: set[Hashable] = set()
        self._due: set[Hashable] = set()
        self._last_output: Document | None = None

    def begin(self, document: Document | None) -> None:
        """Begin a round.

        If the object has changed since the end of the first round, the second calls all recorded hooks again.
        """
        if self.is_second and document != self._last_output:
            self.require()

    def end(self, document: Document | None) -> None:
        """End a round, and store the resulting object."""
        self._last_output = document

    def require(self) -> None:
        """Mark the hooks recorded so far for the second round, because the object has changed since their calls."""
        self._due |= self._asked
        self._asked.clear()

    def is_due(self, key: Hashable) -> bool:
        """Return whether to call a hook in this round: always in the first, only if marked in the second."""
        return not self.is_second or key in self._due

    def note(self, key: Hashable) -> None:
        """Record the call of a hook that allows reinvocation."""
        self._asked.add(key)
