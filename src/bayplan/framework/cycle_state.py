"""The state of one scheduling cycle: data that plugins share between extension points."""

from __future__ import annotations

from typing import TypeVar

from bayplan.objects.pod import Pod

T = TypeVar("T")


class CycleState:
    """Storage for one pod's cycle. Plugins write under their own keys, conventionally ``PreFilter<Name>``.

    Attributes:
        now_ns: the time of the cycle.
        unreached_pre_filters: plugins whose PreFilter did not run, because an earlier plugin ended PreFilter.
        pods_to_activate: pods that a plugin wants to retry immediately, whatever their tier; moved at the end of a
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
        """Return the item under a key, or None if there is none or it has another type."""
        item = self._data.get(key)
        # Most pods have nothing under most keys, and comparing with None takes less time than `isinstance`.
        return item if item is not None and isinstance(item, kind) else None

    def delete(self, key: str) -> None:
        """Remove an item, if there is one."""
        self._data.pop(key, None)
