"""The state's record of a pod: its footprint on a node, its class, and its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayplan.base.go_text.times import parse_time_ns
from bayplan.objects.pod import Pod
from bayplan.objects.requests import HostPort
from bayplan.state.arrays import Ints, largest_amount

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


class Footprint:
    """The resources that the scheduler counts as used by a pod on its node; shared by all pods with the same spec.

    Attributes:
        vector: int64[3 + resources], the pod's column of the usage matrix (see `POD_COUNT` and the following); `column`
            is the same array, typed for compiled code.
        host_ports: the used host ports.
        largest: the largest amount in `vector` (see `largest_amount`), which bounds sums.
    """

    def __init__(self, vector: Ints, host_ports: tuple[HostPort, ...]) -> None:
        amounts = vector.tolist()
        self.vector = vector
        self.column: Any = vector
        self.host_ports = host_ports
        self.largest: int = max(amounts) if min(amounts) >= 0 else largest_amount(vector)
        # Computed on demand: simulations need it for every pod, scheduling does not.
        self._amounts: tuple[tuple[int, int], ...] | None = None

    def __reduce__(self) -> tuple[type[Footprint], tuple[Ints, tuple[HostPort, ...]]]:
        return Footprint, (self.vector, self.host_ports)

    @property
    def amounts(self) -> tuple[tuple[int, int], ...]:
        """Return the elements of `vector` other than 0, as (row of the usage matrix, amount) pairs."""
        if self._amounts is None:
            self._amounts = tuple([(number, amount) for number, amount in enumerate(self.vector.tolist()) if amount])
        return self._amounts


class PodClass:
    """Pods that no selector distinguishes: same namespace, same labels, terminating or not.

    Attributes:
        code: the number of the class, in the order of creation.
        nodes: the number of such pods by row; new counters are filled from it.
        counters: the counters that count such pods.
    """

    def __init__(self, code: int, namespace: str, labels: dict[str, str], terminating: bool) -> None:
        self.code = code
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

    @property
    def start_ns(self) -> int:
        """Return when the pod started, in nanoseconds; `JUST_STARTED_NS` if its status has no start time."""
        return self.started_at()

    def started_at(self) -> int:
        """Return `start_ns`; a method, because compiled code calls it faster."""
        if self._start_ns == _UNKNOWN:
            text = self.pod.status.start_time
            self._start_ns = JUST_STARTED_NS if text is None else parse_time_ns(text)
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
