"""The resources that a score weighs: what nodes offer and pods request of them, and what the pod adds. Not a plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from bayplan.framework.configuration.plugin_arguments import ResourceSpec
from bayplan.framework.rule import ScoreRule
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from bayplan.plugins.scored_devices import DeviceTally, ScoredDevices
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE
from bayplan.state.resource_table import FIRST_RESOURCES

DEFAULT_RESOURCES = (ResourceSpec(CPU, 1), ResourceSpec(MEMORY, 1))
"""The resources that are scored if the configuration has none."""


class ScoredResource(Struct, frozen=True, gc=False):
    """A resource that counts for a score.

    Attributes:
        number: its number in the state.
        weight: how much it counts.
        request: the request of the pod (milli for cpu).
    """

    number: int
    weight: int
    request: int

    @property
    def is_scalar(self) -> bool:
        """Return whether this is a resource that a device class may stand for."""
        return self.number >= len(FIRST_RESOURCES)


def scored_resources(
    specs: Iterable[ResourceSpec], requests: Mapping[str, int], cluster: ClusterState
) -> tuple[ScoredResource, ...]:
    """Return the resources that count for a pod, in the order of the configuration.

    CPU, memory and ephemeral storage count always, scalar resources if the pod asks for them, other names never, since no
    node counts them.
    """
    found = []
    for spec in specs:
        request = requests.get(spec.name, 0)
        if spec.name in (CPU, MEMORY, EPHEMERAL_STORAGE) or (request != 0 and is_scalar(spec.name)):
            cluster.admit(request)
            found.append(ScoredResource(cluster.register_resource(spec.name), spec.weight, request))
    return tuple(found)


class ResourceScore(ScoreRule):
    """Base of the rules that score how much of some resources is requested.

    Args:
        scored: the resources that count.
        devices: counts the devices that stand for a resource on nodes that have none of it themselves.
        cluster: the state.
    """

    def __init__(self, scored: Sequence[ScoredResource], devices: ScoredDevices, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self.count = len(scored)
        self._scored = tuple(scored)
        self._devices = devices
        self.numbers: Any = np.array([resource.number for resource in scored], dtype=np.intp)
        self.weights: Any = np.array([resource.weight for resource in scored], dtype=np.int64)
        self.requests: Any = np.array([resource.request for resource in scored], dtype=np.int64)
        self._seen: object = None
        self._tallies: list[DeviceTally | None] = []
        self.has_devices = False

    def refresh(self) -> bool:
        """Take the tallies of devices that PreScore found; without PreScore, count now."""
        params = self.params
        if params is None:
            params = self._devices.tallies(self._scored)
        if params is not self._seen:
            self._seen = params
            by_number = {tally.number: tally for tally in params if isinstance(tally, DeviceTally)}
            self.has_devices = bool(by_number)
            self._tallies = [by_number.get(resource.number) for resource in self._scored]
        return False

    def allocatable(self, place: int, row: int) -> int:
        """Return what a node offers of a resource, in devices if devices provide it on that node."""
        own = self.columns.allocatable[self.numbers[place], row]
        if self.has_devices and own == 0:
            tally = self._tallies[place]
            if tally is not None:
                return int(tally.capacity[row])
        return own

    def requested(self, place: int, row: int) -> int:
        """Return what pods on a node request of a resource, or how many of the devices that stand for it are allocated."""
        number = self.numbers[place]
        if self.has_devices and self.columns.allocatable[number, row] == 0:
            tally = self._tallies[place]
            if tally is not None and tally.capacity[row] > 0:
                return int(tally.used[row])
        return self.columns.usage[FIRST_RESOURCE + number, row]
