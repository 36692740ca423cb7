"""Data that plugins share between the extension points of one scheduling cycle."""

from __future__ import annotations

from typing import TypeVar

from bayplan.objects.pod import Pod

T = TypeVar("T")


class CycleState:
    """Storage for one pod's cycle; plugins write under their own keys, conventionally ``PreFilter<Name>``.

    Attributes:
        now_ns: the instant of the cycle.
        unreached_pre_filters: plugins whose PreFilter did not run, because an earlier one had ended PreFilter.
        pods_to_activate: pods that a plugin wants to be retried immediately, in any tier; moved at the end of a
            scheduling cycle that found a node, and again when the pod is bound.
    """

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self.unreached_pre_filters: tuple[str, ...] = ()
        self.pods_to_activate: tuple[Pod, ...] = ()
        self._data: dict[str, object] = {}

    def write(self, key: str, item: object) -> None:
        """Store an item, replacing any previous one."""
        self._data[key] = item

    def read(self, key: str, kind: type[T]) -> T | None:
        """Return the item under a key if it has the given type, else None."""
        if not self._data:
            # Most pods need no shared data.
            return None
        item = self._data.get(key)
        return item if isinstance(item, kind) else None

    def delete(self, key: str) -> None:
        """Remove an item; no error if there is none."""
        self._data.pop(key, None)
