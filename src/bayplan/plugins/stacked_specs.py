"""What is computed once for several specs that are asked about together, again and again. Not a plugin."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Spec = TypeVar("Spec")
Stack = TypeVar("Stack")

REMEMBERED = 64


class StackedSpecs(Generic[Spec, Stack]):
    """Keeps what a function makes of a sequence of specs, by the identity of the specs."""

    def __init__(self, stack: Callable[[Sequence[Spec]], Stack]) -> None:
        self._stack = stack
        # The specs are held, so that no address is used again while it is part of a key here.
        self._known: OrderedDict[tuple[int, ...], tuple[Sequence[Spec], Stack]] = OrderedDict()
        self._latest: tuple[Sequence[Spec], Stack] | None = None

    def of(self, specs: Sequence[Spec]) -> Stack:
        """Return what the function gives for these specs. The sequence must not be changed later."""
        if self._latest is not None and self._latest[0] is specs:
            return self._latest[1]
        key = tuple(map(id, specs))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (specs, self._stack(specs))
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._latest = (specs, known[1])
        return known[1]
