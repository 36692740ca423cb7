"""The newest version of every object that a scheduler has received, to rebuild the scheduler.

It stores references, not copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod


class Change(Protocol):
    """A change of the cluster: an addition (no `old`), an update, or a deletion (no `new`)."""

    @property
    def old(self) -> KubernetesObject | None:
        """The object before the change, or None."""
        ...

    @property
    def new(self) -> KubernetesObject | None:
        """The object after the change, or None."""
        ...


class ObjectMirror:
    """Objects by kind and key, in order of arrival."""

    def __init__(self) -> None:
        self._tables: dict[type[KubernetesObject], dict[str, KubernetesObject]] = {}

    def __len__(self) -> int:
        return sum(len(table) for table in self._tables.values())

    def __iter__(self) -> Iterator[KubernetesObject]:
        """Iterate over all objects in the order for a scheduler: pods last, those with a node before pending pods."""
        for kind, table in self._tables.items():
            if kind is not Pod:
                yield from table.values()
        pods = [pod for pod in self._tables.get(Pod, {}).values() if isinstance(pod, Pod)]
        yield from (pod for pod in pods if pod.spec.node_name)
        yield from (pod for pod in pods if not pod.spec.node_name)

    def apply(self, old: KubernetesObject | None, new: KubernetesObject | None) -> None:
        """Apply a change: an addition (no `old`), an update, or a deletion (no `new`)."""
        if new is not None:
            table = self._tables.get(type(new))
            if table is None:
                table = self._tables[type(new)] = {}
            table[key_of_object(new)] = new
        elif old is not None:
            self._tables.get(type(old), {}).pop(key_of_object(old), None)

    def pod(self, key: str) -> Pod | None:
        """Return a pod by ``namespace/name``, or None."""
        found = self._tables.get(Pod, {}).get(key)
        return found if isinstance(found, Pod) else None


def key_of_object(item: KubernetesObject) -> str:
    """Return ``namespace/name``, or ``name`` without a namespace."""
    metadata = item.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
