"""The surroundings of a pod, as root causes need them: claims, volumes, other pods, free amounts, configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from bayplan.analysis.free_amounts import free_amounts, pods_on_nodes
from bayplan.objects.affinity import NodeSelector
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts

if TYPE_CHECKING:
    from bayplan.analysis.run_source import RunSource

T = TypeVar("T", bound=KubernetesObject)


@runtime_checkable
class CatalogSource(Protocol):
    """A source that also has claims, volumes and other objects."""

    @property
    def catalog(self) -> ObjectLookup:
        """The lookup of these objects by kind and key."""
        ...


class Surroundings(Protocol):
    """The known state of a cluster at the time of a decision."""

    @property
    def added_affinity(self) -> NodeSelector | None:
        """The required node affinity that the scheduler's configuration adds to all pods (addedAffinity), if it is known."""
        ...

    @property
    def unread(self) -> Collection[str]:
        """The kinds whose objects are unknown, because the input lacks them or they could not be read."""
        ...

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object that is neither a node nor a pod, or None."""
        ...

    def keys(self, kind: type[KubernetesObject]) -> Collection[str]:
        """Return the keys of all known objects of a kind other than nodes and pods."""
        ...

    def placed(self) -> Iterable[tuple[Pod, str]]:
        """Return the pods on nodes, with the names of the nodes."""
        ...

    def free(self, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the amounts that are allocatable and not requested, by node and resource."""
        ...

    def nodes_with_devices(self) -> Sequence[str] | None:
        """Return the nodes whose devices, free or taken, match all resource claims of the pod; None if that is unknown."""
        ...


class NoSurroundings:
    """Surroundings without any known object."""

    added_affinity: NodeSelector | None = None
    unread: Collection[str] = ()

    def get(self, kind: type[T], key: str) -> T | None:
        """Return None: no object is known."""
        return None

    def keys(self, kind: type[KubernetesObject]) -> tuple[()]:
        """Return (): no object is known."""
        return ()

    def placed(self) -> tuple[()]:
        """Return (): no pod is known."""
        return ()

    def free(self, nodes: Collection[str]) -> dict[str, Amounts]:
        """Return {}: no free amount is known."""
        return {}

    def nodes_with_devices(self) -> None:
        """Return None: no device is known."""
        return


@runtime_checkable
class SurroundingsSource(Protocol):
    """A source that knows the surroundings of its last decision, so they need not be derived from timelines."""

    @property
    def surroundings(self) -> Surroundings:
        """The surroundings of the last decision."""
        ...


@runtime_checkable
class ConfiguredSource(Protocol):
    """A source that knows the scheduler's configuration."""

    def added_affinity_of(self, scheduler_name: str) -> NodeSelector | None:
        """Return the required node affinity that a profile adds to all pods, or None."""
        ...


class RunSurroundings:
    """The cluster just before a decision of a run, derived from timelines.

    Args:
        source: the run.
        number: the number of the decision.
        scheduler_name: the name of the pod's scheduler.
    """

    unread: Collection[str] = ()

    def __init__(self, source: RunSource, number: int, scheduler_name: str) -> None:
        self._source, self._number, self._scheduler_name = source, number, scheduler_name

    @property
    def added_affinity(self) -> NodeSelector | None:
        """Return the affinity that the scheduler's configuration adds; None if the source does not know the configuration."""
        source = self._source
        return source.added_affinity_of(self._scheduler_name) if isinstance(source, ConfiguredSource) else None

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object of the source's catalog; None if the source has no such object, or no catalog."""
        return self._source.catalog.get(kind, key) if isinstance(self._source, CatalogSource) else None

    def keys(self, kind: type[KubernetesObject]) -> tuple[()]:
        """Return (): a catalog of a source can't be listed."""
        return ()

    def placed(self) -> Iterator[tuple[Pod, str]]:
        """Yield the pods that were on nodes just before the decision, each with the name of its node."""
        for life in pods_on_nodes(self._source, self._number):
            if life.pod is not None:
                yield life.pod, life.node

    def free(self, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the free amounts of nodes just before the decision, by node and resource."""
        return free_amounts(self._source, self._number, nodes)

    def nodes_with_devices(self) -> None:
        """Return None: the claims at the time of the decision are not known."""
        return


def surroundings_of(source: RunSource, number: int, scheduler_name: str) -> Surroundings:
    """Return the surroundings of a decision; `scheduler_name` selects the profile."""
    return (
        source.surroundings
        if isinstance(source, SurroundingsSource)
        else RunSurroundings(source, number, scheduler_name)
    )
