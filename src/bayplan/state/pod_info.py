"""The state's record of a pod: its footprint on a node, its class, and its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bayplan.base.go_text.times import parse_instant
from bayplan.objects.pod import Pod
from bayplan.objects.requests import HostPort
from bayplan.state.arrays import SMALL, Ints
from bayplan.state.resource_table import EPHEMERAL_STORAGE

if TYPE_CHECKING:
    from bayplan.state.counters import Counter

POD_COUNT = 0
NON_ZERO_CPU = 1
NON_ZERO_MEMORY = 2
FIRST_RESOURCE = 3
"""Rows of the usage matrix: number of pods, requests for scoring (with defaults if absent), then one per resource."""


JUST_STARTED_NS = (1 << 63) - 1
"""The start time of a pod without one: it counts as started now, later than any other."""

_UNKNOWN = -(1 << 63)
"""Value of a start time that has not been computed yet."""


Amounts: TypeAlias = tuple[tuple[int, int], ...]
"""Amounts other than 0, as (row of the usage matrix, amount) pairs in ascending order."""


class Footprint:
    """The resources that a pod takes on its node; shared by all pods with the same resources.

    Args:
        amounts: the amounts (see `POD_COUNT` and the following).
        host_ports: the used host ports.

    Attributes:
        amounts, host_ports: the arguments.
        entries: int64[2, len(amounts)], the same rows and amounts for compiled code.
        largest: the largest amount, which bounds sums, as `largest_amount` returns it.
    """

    def __init__(self, amounts: Amounts, host_ports: tuple[HostPort, ...]) -> None:
        self.amounts = amounts
        self.host_ports = host_ports
        self.entries: Any = np.empty((2, len(amounts)), dtype=np.int64)
        entries, largest, smallest = self.entries, 0, 0
        for index in range(len(amounts)):
            row, amount = amounts[index]
            entries[0, index], entries[1, index] = row, amount
            largest, smallest = max(largest, amount), min(smallest, amount)
        self.largest = largest if smallest >= 0 else max(SMALL, largest)

    def __reduce__(self) -> tuple[type[Footprint], tuple[Amounts, tuple[HostPort, ...]]]:
        return Footprint, (self.amounts, self.host_ports)

    @property
    def vector(self) -> Ints:
        """Return the pod's column of the usage matrix, up to its last resource: int64[at least 6]."""
        last = max(FIRST_RESOURCE + EPHEMERAL_STORAGE, self.amounts[len(self.amounts) - 1][0])
        vector = np.zeros(last + 1, dtype=np.int64)
        for number, amount in self.amounts:
            vector[number] = amount
        return vector


class PodClass:
    """Pods that no selector distinguishes: same namespace, same labels, terminating or not.

    Attributes:
        nodes: the number of such pods by row; new counters are filled from it.
        counters: the counters that count such pods.
    """

    def __init__(self, namespace: str, labels: dict[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.nodes: dict[int, int] = {}
        self.counters: list[Counter] = []


class PodInfo:
    """A pod on a node, or a pod that is about to be placed.

    Attributes:
        key: ``namespace/name``.
        row: the row of the pod's node; -1 if it has none.
        owned_counters: the counters of the pod's own affinity terms.
    """

    def __init__(
        self,
        key: str,
        pod: Pod,
        footprint: Footprint,
        pod_class: PodClass,
        priority: int,
        owned_counters: tuple[Counter, ...] = (),
    ) -> None:
        self.key = key
        self.pod = pod
        self.footprint = footprint
        self.pod_class = pod_class
        self.priority = priority
        self.owned_counters = owned_counters
        self.row = -1
        self._start_ns = _UNKNOWN

    def started_at(self) -> int:
        """Return when the pod started, in nanoseconds; `JUST_STARTED_NS` if its status has no start time."""
        if self._start_ns == _UNKNOWN:
            start_ns = parse_instant(self.pod.status.start_time)
            self._start_ns = JUST_STARTED_NS if start_ns is None else start_ns
        return self._start_ns

    def replace_version(self, pod: Pod) -> None:
        """Replace the pod by a newer version with the same resources."""
        self.pod = pod
        self._start_ns = _UNKNOWN

    def __repr__(self) -> str:
        return f"PodInfo({self.key!r}, row={self.row})"


def counts_the_same(old: Pod, new: Pod) -> bool:
    """Return whether two versions of a pod count the same in all columns and counters."""
    if old.spec is not new.spec and old.spec != new.spec:
        return False
    before, after = old.metadata, new.metadata
    if before.labels != after.labels or (before.deletion_timestamp is None) != (after.deletion_timestamp is None):
        return False
    # Container statuses contain the resources of a resize in progress.
    return (old.status.container_statuses, old.status.init_container_statuses) == (
        new.status.container_statuses,
        new.status.init_container_statuses,
    )
