"""The resources that a score weighs: their columns, and what the pod adds to them. Not a plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct, structs

from bayplan.framework.configuration.plugin_arguments import ResourceSpec
from bayplan.framework.plugin import Params
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from bayplan.state.arrays import Floats, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.resource_table import CPU as CPU_NUMBER
from bayplan.state.resource_table import FIRST_RESOURCES
from bayplan.state.resource_table import MEMORY as MEMORY_NUMBER
from bayplan.state.views import Rows

DEFAULT_RESOURCES = (ResourceSpec(CPU, 1), ResourceSpec(MEMORY, 1))
"""What is weighed where the configuration says nothing."""


class DeviceTally:
    """How many devices stand for one resource on each node.

    Attributes:
        number: of the resource. capacity, used: int64[rows], the devices of the node and those of them that are allocated.
    """

    __slots__ = ("capacity", "number", "used")

    def __init__(self, number: int, capacity: Ints, used: Ints) -> None:
        self.number = number
        self.capacity = capacity
        self.used = used

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceTally):
            return NotImplemented
        return (
            self.number == other.number
            and np.array_equal(self.capacity, other.capacity)
            and np.array_equal(self.used, other.used)
        )

    def __hash__(self) -> int:
        return hash((self.number, self.capacity.tobytes(), self.used.tobytes()))


class ScoredResource(Struct, frozen=True, gc=False):
    """A resource that counts for a score.

    Attributes:
        number: its number in the state.
        weight: how much it counts.
        request: what the pod adds (milli for cpu).
        devices: what stands for it on nodes that have none of it themselves, or None.
    """

    number: int
    weight: int
    request: int
    devices: DeviceTally | None = None

    @property
    def is_scalar(self) -> bool:
        """Return whether this is a resource that a device class may stand for."""
        return self.number >= len(FIRST_RESOURCES)

    def allocatable(self, rows: Rows) -> Ints:
        """Return what nodes offer of it, in devices where devices stand for it."""
        own = rows.allocatable(self.number)
        if self.devices is None:
            return own
        return rows.where(own == 0, rows.take(self.devices.capacity, rows.row_numbers()), own)

    def requested(self, rows: Rows) -> Ints:
        """Return what pods on the nodes request of it, or how many of those devices are allocated."""
        own = rows.requested(self.number)
        if self.devices is None:
            return own
        numbers = rows.row_numbers()
        by_devices = (rows.allocatable(self.number) == 0) & (rows.take(self.devices.capacity, numbers) > 0)
        return rows.where(by_devices, rows.take(self.devices.used, numbers), own)

    def non_zero_requested(self, rows: Rows) -> Ints:
        """Return `requested`, of CPU and memory with the defaults for containers that ask for nothing."""
        if self.number in (CPU_NUMBER, MEMORY_NUMBER):
            return rows.non_zero_requested(self.number)
        return self.requested(rows)


def scored_resources(
    specs: Iterable[ResourceSpec], requests: Mapping[str, int], cluster: ClusterState
) -> tuple[ScoredResource, ...]:
    """Return the resources that count for a pod, in the order of the configuration.

    CPU, memory and ephemeral storage count always, scalar resources where the pod asks for them, other names never, since no
    node counts them.
    """
    found = []
    for spec in specs:
        request = requests.get(spec.name, 0)
        if spec.name in (CPU, MEMORY, EPHEMERAL_STORAGE) or (request != 0 and is_scalar(spec.name)):
            cluster.admit(request)
            found.append(ScoredResource(cluster.register_resource(spec.name), spec.weight, request))
    return tuple(found)


@lru_cache(maxsize=1024)
def request_column(*requests: float) -> Floats:
    """Return float64[resources, 1], what a pod adds to columns of as many resources. Not to be written to.

    Who asks for the same gets the same array (see `UsageFloats.requested_with`).
    """
    return np.array([(request,) for request in requests], dtype=np.float64)


def request_columns(pods: Iterable[Sequence[ScoredResource]]) -> Floats:
    """Return float64[pods, resources, 1], the same for several pods by the resources that count for them."""
    requests = np.array([[resource.request for resource in scored] for scored in pods], dtype=np.float64)
    return requests[:, :, np.newaxis]


def with_devices(scored: tuple[ScoredResource, ...], tallies: Params) -> tuple[ScoredResource, ...]:
    """Return resources with the devices that stand for some of them."""
    by_number = {tally.number: tally for tally in tallies if isinstance(tally, DeviceTally)}
    if not by_number:
        return scored
    return tuple(structs.replace(resource, devices=by_number.get(resource.number)) for resource in scored)
