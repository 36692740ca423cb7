"""PodFitsResources: rejects nodes without room for the pod's requests, or for one more pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from bayplan.base import go_arithmetic as go
from bayplan.base.errors import InvariantError
from bayplan.classic.arguments import ClassicArguments, classic_arguments
from bayplan.classic.requests import resource_request
from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads
from bayplan.framework.rule import FilterRule
from bayplan.objects.pod import Pod
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT

PODS_REASON = "Insufficient pods"
MAX_FLAGS = 8
"""Maximum number of resources with their own bits in a verdict. With more, sets of resources are numbered."""

MAX_SETS = 0x1FF


class ResourceRequest(msgspec.Struct, frozen=True):
    """A pod's request for one resource: name, number of the resource, amount."""

    name: str
    number: int
    amount: int


@dataclass(frozen=True, slots=True)
class FitSpec:
    """The requests of a pod. Empty if it requests nothing: then it fits every node that allows one more pod."""

    key: tuple[tuple[int, int], ...]
    requests: tuple[ResourceRequest, ...] = field(compare=False)


def compile_fit(pod: Pod, cluster: ClusterState, arguments: ClassicArguments) -> FitSpec:
    """Return the requests to compare; CPU, memory and ephemeral storage are included if the pod requests anything."""
    amounts = resource_request(pod, pod_overhead=arguments.gates.pod_overhead)
    basic = {CPU, MEMORY, EPHEMERAL_STORAGE}
    if not any(amounts[name] for name in basic) and amounts.keys() == basic:
        return FitSpec((), ())
    requests = []
    for name, amount in sorted(amounts.items(), key=lambda item: (item[0] not in basic, item[0])):
        if not (is_extended(name) and name in arguments.ignored_extended_resources):
            cluster.admit(amount)
            requests.append(ResourceRequest(name, cluster.register_resource(name), amount))
    return FitSpec(tuple((item.number, item.amount) for item in requests), tuple(requests))


class Shortages:
    """Encodes which resources a node lacks as numbers below 0x200: bits, or numbers of sets if there are too many."""

    def __init__(self) -> None:
        self._sets: dict[FitSpec, list[tuple[bool, ...]]] = {}

    def rule(self, spec: FitSpec, cluster: ClusterState) -> ResourceShortage:
        """Return the rule that compares a pod's requests with free resources."""
        return ResourceShortage(spec.requests, self._known(spec), cluster)

    def _known(self, spec: FitSpec) -> list[tuple[bool, ...]]:
        return self._sets.setdefault(spec, [(False,) * (len(spec.requests) + 1)])

    def reasons(self, spec: FitSpec, code: int) -> tuple[str, ...]:
        """Return the reasons that a code stands for."""
        names = (PODS_REASON, *(f"Insufficient {request.name}" for request in spec.requests))
        if len(spec.requests) <= MAX_FLAGS:
            found = tuple(bool(code >> place & 1) for place in range(len(names)))
        else:
            found = self._known(spec)[code]
        return tuple(name for name, lacks in zip(names, found, strict=True) if lacks)


class PodFitsResources(FilterPlugin[FitSpec]):
    """Rejects nodes without room for the pod. Evicting pods may help even if a request exceeds the node's capacity."""

    name = "PodFitsResources"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._arguments = classic_arguments(arguments)
        self._shortages = Shortages()

    def compile(self, pod: Pod, cluster: ClusterState) -> FitSpec:
        """Return the requests of the pod."""
        return compile_fit(pod, cluster, self._arguments)

    def filter_rule(self, spec: FitSpec, cluster: ClusterState) -> FilterRule:
        """Return the rule that compares the pod's requests with free resources."""
        return self._shortages.rule(spec, cluster)

    def reasons(self, spec: FitSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return one reason for each insufficient resource."""
        return self._shortages.reasons(spec, verdict)


class ResourceShortage(FilterRule):
    """Returns the resources that a node lacks: a bit for pods and one for each request, or the number of a set.

    Args:
        requests: the requests of the pod.
        sets: the numbered sets, in the order of the numbers; the first is the empty set.
        cluster: the state.
    """

    def __init__(
        self, requests: Sequence[ResourceRequest], sets: list[tuple[bool, ...]], cluster: ClusterState
    ) -> None:
        super().__init__(cluster.columns)
        self._sets = sets
        self._count = len(requests)
        self._numbers: Any = np.array([request.number for request in requests], dtype=np.intp)
        self._amounts: Any = np.array([request.amount for request in requests], dtype=np.int64)
        self._short: Any = np.zeros(len(requests) + 1, dtype=np.uint8)

    def filter(self, row: int) -> int:
        """Compare each request with the free amount on the node."""
        columns, short, verdict = self.columns, self._short, 0
        short[0] = columns.usage[POD_COUNT, row] >= columns.allowed_pods[row]
        if short[0]:
            verdict = 1
        for place in range(self._count):
            number = self._numbers[place]
            needed = go.add(self._amounts[place], columns.usage[FIRST_RESOURCE + number, row])
            short[place + 1] = columns.allocatable[number, row] < needed
            if short[place + 1]:
                verdict |= 2 << place if self._count <= MAX_FLAGS else 1
        return self._number() if verdict and self._count > MAX_FLAGS else verdict

    def _number(self) -> int:
        found = tuple([bool(lacks) for lacks in self._short])
        if found not in self._sets:
            if len(self._sets) > MAX_SETS:
                raise InvariantError(f"{len(self._sets)} sets of resources were short for one pod")
            self._sets.append(found)
        return self._sets.index(found)
