"""What plugins hand on to themselves within one scheduling cycle."""

from __future__ import annotations

from typing import TypeVar

from bayplan.objects.pod import Pod

T = TypeVar("T")


class CycleState:
    """A scratch pad for one pod's cycle; plugins write under keys of their own, conventionally ``PreFilter<Name>``.

    Attributes:
        now_ns: the instant of the cycle.
        skip_filter_plugins: plugins whose PreFilter returned Skip.
        skip_score_plugins: plugins whose PreScore returned Skip.
        unreached_pre_filters: plugins whose PreFilter was not asked, as one before them had ended PreFilter.
        pods_to_activate: pods that a plugin wants to be tried at once, wherever they wait; taken at the end of a scheduling cycle
            that found a node, and again when the pod is bound.
    """

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self.skip_filter_plugins: tuple[str, ...] = ()
        self.skip_score_plugins: tuple[str, ...] = ()
        self.unreached_pre_filters: tuple[str, ...] = ()
        self.pods_to_activate: tuple[Pod, ...] = ()
        self._data: dict[str, object] = {}

    def write(self, key: str, item: object) -> None:
        """Store an item, replacing what was there."""
        self._data[key] = item

    def read(self, key: str, kind: type[T]) -> T | None:
        """Return the item under a key where it is of the given type, else None."""
        if not self._data:
            # Most pods need nothing that plugins hand on.
            return None
        item = self._data.get(key)
        return item if isinstance(item, kind) else None

    def delete(self, key: str) -> None:
        """Forget an item; no error where there is none."""
        self._data.pop(key, None)

    def clone(self) -> CycleState:
        """Return a copy that can be written without touching this one; items are shared."""
        other = CycleState(self.now_ns)
        other.skip_filter_plugins = self.skip_filter_plugins
        other.skip_score_plugins = self.skip_score_plugins
        other.unreached_pre_filters = self.unreached_pre_filters
        other.pods_to_activate = self.pods_to_activate
        other._data = dict(self._data)
        return other
