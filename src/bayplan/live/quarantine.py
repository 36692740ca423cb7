"""Quarantine for pods and other objects that broke the engine, so that it can schedule the rest of the cluster."""

from __future__ import annotations

from bayplan.base.durations import SECOND_NS
from bayplan.live.object_mirror import ObjectMirror, key_of_object
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

MAX_HOLD_NS = 300 * SECOND_NS


class Quarantine:
    """The objects in quarantine, and the times at which pods are released."""

    def __init__(self) -> None:
        self._until_ns: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._objects: dict[tuple[type[KubernetesObject], str], KubernetesObject] = {}

    def __len__(self) -> int:
        return len(self._until_ns) + len(self._objects)

    def put_pod(self, key: str, now_ns: int) -> None:
        """Hold back a pod whose cycle broke the engine; the duration doubles with each failure."""
        times = self._times[key] = self._times.get(key, 0) + 1
        self._until_ns[key] = now_ns + min(SECOND_NS << min(times, 10), MAX_HOLD_NS)

    def put_object(self, item: KubernetesObject) -> None:
        """Hold back an object that the engine could not process, until the object changes."""
        self._objects[type(item), key_of_object(item)] = item

    def contains(self, item: KubernetesObject) -> bool:
        """Return whether an object is held back."""
        key = key_of_object(item)
        if isinstance(item, Pod) and not item.spec.node_name and key in self._until_ns:
            return True
        return self._objects.get((type(item), key)) is item

    def hides(self, old: KubernetesObject | None, new: KubernetesObject | None) -> bool:
        """Process a change of an object; return whether to hide it, because the engine does not know the object."""
        item = new if new is not None else old
        if item is None:
            return False
        key = key_of_object(item)
        if self._objects.pop((type(item), key), None) is not None and new is None:
            return True
        if not isinstance(item, Pod) or key not in self._until_ns:
            return False
        if new is None or item.spec.node_name:
            self._forget(key)
            # The engine does not know the held-back pod. If the pod has got a node, the engine processes it like any
            # other.
            return new is None
        return True

    def next_ns(self) -> int | None:
        """Return the time (ns) at which the next pod is released, or None."""
        return min(self._until_ns.values(), default=None)

    def released(self, now_ns: int, mirror: ObjectMirror) -> list[Pod]:
        """Release and return the pods whose time has come, in their newest version."""
        if not self._until_ns:
            return []
        due = [key for key, until_ns in self._until_ns.items() if until_ns <= now_ns]
        for key in due:
            del self._until_ns[key]
        return [pod for pod in map(mirror.pod, due) if pod is not None]

    def _forget(self, key: str) -> None:
        del self._until_ns[key]
        self._times.pop(key, None)
