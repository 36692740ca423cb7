"""Reinvocation of mutating hooks whose object has changed since their first call.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#reinvocation-policy
"""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.base.plain_data import Document


class Reinvocation:
    """The state of one type of hooks over the two rounds of a request.

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
        """Begin a round; in the second, all hooks are due if built-in admission or other hooks have changed the object."""
        if self.is_second and document != self._last_output:
            self.require()

    def end(self, document: Document | None) -> None:
        """End a round with the current object."""
        self._last_output = document

    def require(self) -> None:
        """Schedule the hooks that have been called so far and allow reinvocation."""
        self._due |= self._asked
        self._asked.clear()

    def is_due(self, key: Hashable) -> bool:
        """Return whether a hook is called in this round; in the first round, all hooks are."""
        return not self.is_second or key in self._due

    def note(self, key: Hashable) -> None:
        """Record the call of a hook that may be called again."""
        self._asked.add(key)
