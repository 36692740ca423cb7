"""Objects that a controller has seen: their one-time initialization is done."""

from __future__ import annotations

from bayplan.objects.meta import KubernetesObject


class SeenObjects:
    """Objects that a controller has seen, by key, with their uids."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._uids)

    def is_new(self, item: KubernetesObject) -> bool:
        """Return whether an object has not been seen before; one that was recreated under its name counts as new."""
        return self._uids.get(item.key) != item.metadata.uid

    def note(self, item: KubernetesObject) -> None:
        """Record that an object was seen and initialized."""
        self._uids[item.key] = item.metadata.uid

    def forget(self, key: str) -> None:
        """Forget an object that is gone."""
        self._uids.pop(key, None)
