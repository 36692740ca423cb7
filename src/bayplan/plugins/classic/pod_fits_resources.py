"""PodFitsResources: a node must have room for what the pod requests, and for one more pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from bayplan.base.errors import InvariantError
from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads
from bayplan.objects.classic_requests import resource_request
from bayplan.objects.pod import Pod
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended
from bayplan.plugins.classic.arguments import ClassicArguments, classic_arguments
from bayplan.state.arrays import Bools, Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

PODS_REASON = "Insufficient pods"
MOST_FLAGS = 8
"""So many resources have a bit each in a verdict; sets of more get numbers."""


class ResourceRequest(msgspec.Struct, frozen=True):
    """What a pod wants of one resource: name, number of the resource, amount."""

    name: str
    number: int
    amount: int


@dataclass(frozen=True, slots=True)
class FitSpec:
    """The requests of a pod; none where it asks for nothing at all, which fits wherever one more pod is allowed."""

    key: tuple[tuple[int, int], ...]
    requests: tuple[ResourceRequest, ...] = field(compare=False)


def compile_fit(pod: Pod, cluster: ClusterState, arguments: ClassicArguments) -> FitSpec:
    """Return what a pod must find. CPU, memory and ephemeral storage are compared as soon as anything is asked for."""
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
    """Packs what is short on nodes into numbers below 0x200: bits, or numbers of sets where there are more resources than bits."""

    def __init__(self) -> None:
        self._sets: dict[FitSpec, list[tuple[bool, ...]]] = {}

    def codes(self, spec: FitSpec, rows: Rows) -> Codes:
        """Return per row what is short; 0: nothing."""
        short = [rows.pod_count() >= rows.allowed_pods()]
        for request in spec.requests:
            needed = rows.wrap(request.amount + rows.requested(request.number))
            short.append(rows.allocatable(request.number) < needed)
        if len(short) <= MOST_FLAGS + 1:
            return rows.verdicts(*((lacks, 1 << place) for place, lacks in enumerate(short)))
        return self._numbered(spec, short, rows)

    def _numbered(self, spec: FitSpec, short: Sequence[Bools], rows: Rows) -> Codes:
        known = self._sets.setdefault(spec, [(False,) * len(short)])
        numbers = []
        for found in zip(*(rows.to_list(lacks) for lacks in short), strict=True):
            if found not in known:
                known.append(found)
            numbers.append(known.index(found))
        if len(known) > 0x1FF:
            raise InvariantError(f"{len(known)} sets of resources were short for one pod")
        return rows.codes(rows.from_list(numbers))

    def reasons(self, spec: FitSpec, code: int) -> tuple[str, ...]:
        """Return the reasons of a code."""
        names = (PODS_REASON, *(f"Insufficient {request.name}" for request in spec.requests))
        if len(names) <= MOST_FLAGS + 1:
            found = tuple(bool(code >> place & 1) for place in range(len(names)))
        else:
            found = self._sets[spec][code]
        return tuple(name for name, lacks in zip(names, found, strict=True) if lacks)


class PodFitsResources(FilterPlugin[FitSpec]):
    """Rejects nodes without room for the pod. Evictions always may help, even above what the node has at all."""

    name = "PodFitsResources"
    reads = Reads.NODES | Reads.USAGE
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._arguments = classic_arguments(arguments)
        self._shortages = Shortages()

    def compile(self, pod: Pod, cluster: ClusterState) -> FitSpec:
        """Sum up what the pod requests."""
        return compile_fit(pod, cluster, self._arguments)

    def filter(self, spec: FitSpec, params: Params | None, rows: Rows) -> Codes:
        """Return what is short."""
        return self._shortages.codes(spec, rows)

    def reasons(self, spec: FitSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return one reason for each resource that is short."""
        return self._shortages.reasons(spec, verdict)
