"""The lookup of typed objects by kind and key."""

from __future__ import annotations

from typing import Protocol, TypeVar

from bayplan.objects.meta import KubernetesObject

T = TypeVar("T", bound=KubernetesObject)


class ObjectLookup(Protocol):
    """A lookup of objects: a store, a catalog, or the cached objects of a cluster."""

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key (``namespace/name``, or the name), or None if it does not exist."""
        ...
