"""The resources that a plugin scores: the pod's requests, and the allocatable and requested amounts on nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.framework.configuration.plugin_arguments import ResourceSpec
from bayplan.framework.rule import ScoreRule
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from bayplan.plugins.scored_devices import DeviceTally, ScoredDevices
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE
from bayplan.state.resource_table import FIRST_RESOURCES

DEFAULT_RESOURCES = (ResourceSpec(CPU, 1), ResourceSpec(MEMORY, 1))
"""The resources that are scored if the configuration names none."""


class ScoredResource:
    """A scored resource.

    Attributes:
        number: the number of the resource in the state.
        weight: the weight from the configuration.
        request: the pod's request, in milli-CPU for cpu.
    """

    def __init__(self, number: int, weight: int, request: int) -> None:
        self.number = number
        self.weight = weight
        self.request = request

    @property
    def is_scalar(self) -> bool:
        """Return whether this is a scalar resource, which a device class may serve."""
        return self.number >= len(FIRST_RESOURCES)


def scored_resources(
    specs: Iterable[ResourceSpec], requests: Mapping[str, int], cluster: ClusterState
) -> tuple[ScoredResource, ...]:
    """Return the scored resources of a pod, in the order of the configuration.

    Scalar resources are included only if the pod requests them; names that nodes don't count are never included.
    """
    found = []
    for spec in specs:
        request = requests.get(spec.name, 0)
        if spec.name in (CPU, MEMORY, EPHEMERAL_STORAGE) or (request != 0 and is_scalar(spec.name)):
            cluster.admit(request)
            found.append(ScoredResource(cluster.register_resource(spec.name), spec.weight, request))
    return tuple(found)


class ResourceScore(ScoreRule):
    """Base of the rules that score nodes by the requested amounts of resources.

    Args:
        devices: counts the devices that serve a resource on nodes without it.
    """

    def __init__(self, scored: tuple[ScoredResource, ...], devices: ScoredDevices, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.scored = scored
        self._devices = devices
        self._seen: object = None
        self._tallies: list[DeviceTally | None] = []
        self.has_devices = False

    def refresh(self) -> bool:
        """Use the device tallies of PreScore, or count devices now if PreScore is disabled."""
        params = self.params
        if params is None:
            params = self._devices.tallies(self.scored)
        if params is not self._seen:
            self._seen = params
            by_number = {tally.number: tally for tally in params if isinstance(tally, DeviceTally)}
            self.has_devices = bool(by_number)
            self._tallies = [by_number.get(resource.number) for resource in self.scored]
        return False

    def allocatable(self, place: int, row: int) -> int:
        """Return a node's allocatable amount of a resource, or the number of devices that serve it there."""
        resource: ScoredResource = self.scored[place]
        own = self.columns.allocatable[resource.number, row]
        if self.has_devices and own == 0:
            tally = self._tallies[place]
            if tally is not None:
                return int(tally.capacity[row])
        return own

    def requested(self, place: int, row: int) -> int:
        """Return the requested amount of a resource on a node, or the number of allocated devices that serve it."""
        resource: ScoredResource = self.scored[place]
        if self.has_devices and self.columns.allocatable[resource.number, row] == 0:
            tally = self._tallies[place]
            if tally is not None and tally.capacity[row] > 0:
                return int(tally.used[row])
        return self.columns.usage[FIRST_RESOURCE + resource.number, row]
