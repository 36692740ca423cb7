"""Requests of pods: the amounts that the scheduler compares, and host ports.

When to call which function:

- `fit_requests`: the filter of NodeResourcesFit, for the pod that is being scheduled.
- `fit_score_requests`: the score of NodeResourcesFit, for the pod that is being scheduled.
- `balance_requests`: the score of NodeResourcesBalancedAllocation, for the pod that is being scheduled.
- `accounted_requests`: the resources that the node of a bound, assumed or nominated pod counts as used by it.
- `node_amounts`: the allocatable resources of a node, in the same units.
- `pod_requests`: exact quantities with any options, for all other uses.

All `dict[str, int]` are int64: CPU in milli-CPU, every other resource in its unit (bytes, devices).

Source: KEP-753 (sidecars), KEP-1287 (resize), KEP-2837 (pod-level resources) and the behavior of
k8s.io/component-helpers/resource v0.36.3 and k8s.io/kubernetes/pkg/scheduler/framework v1.36.3.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.objects.pod import Container, ContainerStatus, Pod, ResourceRequirements
from bayplan.objects.quantity import Quantity, QuantityLike, milli_value, nano_value, parse_quantity, value
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_pod_level, is_scalar
from bayplan.objects.simple_sums import NON_ZERO, SIMPLE_SUMS, Quantities, on_nodes, rounded_up
from bayplan.objects.simple_sums import Amounts as Amounts

Number = TypeVar("Number", int, Quantity)


class RequestGates(msgspec.Struct, frozen=True, kw_only=True):
    """The feature gates that affect how requests are summed, with their defaults in v1.36."""

    pod_level_resources: bool = True
    in_place_pod_vertical_scaling: bool = True
    in_place_pod_level_resources_vertical_scaling: bool = True
    dra_node_allocatable_resources: bool = False


DEFAULT_GATES = RequestGates()


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for computing requests; the names are those of upstream's PodResourcesOptions.

    Attributes:
        use_status_resources: whether containers with a resize in progress count with the maximum of their requested,
            allocated and actual resources.
        pod_level_vertical_scaling: whether pod-level resources count the same way during a resize.
        exclude_overhead: whether to ignore the pod's overhead.
        skip_pod_level_resources: whether to ignore pod-level resources.
        skip_container_level_resources: whether to count only pod-level resources (and overhead).
        use_node_allocatable_claims: whether to add the node resources of claims in the pod's status.
        missing_requests: by resource, the amounts for containers without a request for it (0 is a request).
        earlier_sums: how often upstream has summed this pod's requests before; see `repeats_overhead`.
    """

    use_status_resources: bool = False
    pod_level_vertical_scaling: bool = False
    exclude_overhead: bool = False
    skip_pod_level_resources: bool = False
    skip_container_level_resources: bool = False
    use_node_allocatable_claims: bool = False
    missing_requests: Quantities | None = None
    earlier_sums: int = 0


_SCORING = RequestOptions(skip_pod_level_resources=True, missing_requests=NON_ZERO)


class AccountedRequests(msgspec.Struct, frozen=True, gc=False):
    """The resources that the scheduler counts as used by a pod on its node.

    Attributes:
        requests: the requests for resources that nodes count, except `pods`.
        non_zero_cpu_milli, non_zero_memory_bytes: CPU and memory with `DEFAULT_CPU_MILLI` and `DEFAULT_MEMORY_BYTES`
            for containers without requests; scores read them.
    """

    requests: Amounts
    non_zero_cpu_milli: int
    non_zero_memory_bytes: int


def fit_requests(pod: Pod, gates: RequestGates = DEFAULT_GATES) -> Amounts:
    """Return the amounts that NodeResourcesFit's filter compares with the free amounts of a node.

    Resizes are ignored, because the pod has not run yet. Negative sums count as 0. A scalar resource with a request of
    0 is included, because its presence makes upstream compare all resources instead of only counting pods.
    """
    simple = SIMPLE_SUMS.of(pod)
    if simple is not None and simple.on_nodes is not None:
        return simple.on_nodes.copy()
    requests = pod_amounts(pod, _fitting(gates))
    return {
        name: max(0, amount)
        for name, amount in requests.items()
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)
    }


def fit_score_requests(pod: Pod) -> Amounts:
    """Return the amounts that NodeResourcesFit's score adds to a node.

    Containers without requests count with the defaults; pod-level resources, resizes and feature gates are ignored.
    """
    return pod_amounts(pod, _SCORING)


def balance_requests(pod: Pod, gates: RequestGates = DEFAULT_GATES, earlier_sums: int = 0) -> Amounts:
    """Return the amounts that NodeResourcesBalancedAllocation's score adds to a node.

    Containers without requests count as 0; pod-level resources and resizes are included.
    """
    options = replace(_balancing(gates), earlier_sums=earlier_sums) if earlier_sums else _balancing(gates)
    return pod_amounts(pod, options)


def accounted_requests(pod: Pod, gates: RequestGates = DEFAULT_GATES, earlier_sums: int = 0) -> AccountedRequests:
    """Return the resources counted as used by a pod on the node that it is bound, assumed or nominated to."""
    simple = SIMPLE_SUMS.of(pod)
    if simple is not None and simple.on_nodes is not None and simple.counted is not None:
        counted = simple.counted
        return AccountedRequests(simple.on_nodes.copy(), counted.get(CPU, 0), counted.get(MEMORY, 0))
    options = replace(_accounting(gates), earlier_sums=earlier_sums) if earlier_sums else _accounting(gates)
    amounts = pod_amounts(pod, options)
    if gates.pod_level_resources and has_pod_level_requests(pod):
        missing = {name: quantity for name, quantity in NON_ZERO.items() if name not in amounts}
        non_zero = amounts
        if missing:
            non_zero = pod_amounts(pod, replace(options, missing_requests=missing, earlier_sums=earlier_sums + 1))
    else:
        non_zero = pod_amounts(pod, _accounting_non_zero(gates))
    return AccountedRequests(on_nodes(amounts), non_zero.get(CPU, 0), non_zero.get(MEMORY, 0))


@cache
def _fitting(gates: RequestGates) -> RequestOptions:
    return RequestOptions(skip_pod_level_resources=not gates.pod_level_resources)


@cache
def _balancing(gates: RequestGates) -> RequestOptions:
    return replace(_accounting(gates), use_node_allocatable_claims=False)


@cache
def _accounting(gates: RequestGates) -> RequestOptions:
    return RequestOptions(
        use_status_resources=gates.in_place_pod_vertical_scaling,
        pod_level_vertical_scaling=gates.in_place_pod_level_resources_vertical_scaling,
        skip_pod_level_resources=not gates.pod_level_resources,
        use_node_allocatable_claims=gates.dra_node_allocatable_resources,
    )


@cache
def _accounting_non_zero(gates: RequestGates) -> RequestOptions:
    return replace(_accounting(gates), missing_requests=NON_ZERO)


def node_amounts(resources: Quantities) -> Amounts:
    """Return a node's resources that scheduling counts: CPU, memory, ephemeral storage, pods, and scalar resources."""
    return {
        name: milli_value(quantity) if name == CPU else value(quantity)
        for name, quantity in resources.items()
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE, PODS) or is_scalar(name)
    }


# --- sums -------------------------------------------------------------------------------------------------------------


def pod_amounts(pod: Pod, options: RequestOptions) -> Amounts:
    """Return a pod's requests as int64 (CPU in milli-CPU), rounded up once, after all sums.

    Sums are computed in integer nanos, which is exact. If an amount is negative or exceeds int64, upstream's result
    depends on its representation of numbers: then the sums are computed again with `Quantity`, which behaves the same.
    """
    simple = None if options.skip_container_level_resources else SIMPLE_SUMS.of(pod)
    amounts = simple.amounts(options.missing_requests) if simple else None
    if amounts is None:
        amounts = rounded_up(_sum_requests(pod, options, nano_value))
    if amounts is not None:
        return amounts
    return {
        name: quantity.milli_value() if name == CPU else quantity.value()
        for name, quantity in pod_requests(pod, options).items()
    }


def pod_requests(pod: Pod, options: RequestOptions) -> dict[str, Quantity]:
    """Return a pod's requests as quantities."""
    return _sum_requests(pod, options, parse_quantity)


def _sum_requests(pod: Pod, options: RequestOptions, read: Callable[[QuantityLike], Number]) -> dict[str, Number]:
    """Return a pod's requests as numbers of the type that `read` returns for quantities."""
    spec = pod.spec
    total: dict[str, Number] = {}
    if not options.skip_container_level_resources:
        total = _sum_containers(pod, options, read)
    if not options.skip_pod_level_resources and spec.resources is not None:
        resources = spec.resources
        effective: dict[str, Number] | None = None
        actuated = pod.status.resources
        if options.pod_level_vertical_scaling and options.use_status_resources and actuated is not None:
            effective = _effective_requests(pod, resources, actuated, pod.status.allocated_resources, read)
        for name, quantity in resources.requests.items():
            if is_pod_level(name):
                total[name] = read(quantity) if effective is None else effective.get(name, read(0))
    if not options.exclude_overhead and spec.overhead:
        _add(total, spec.overhead, read)
        for name in _repeated_overhead(pod, options) if options.earlier_sums else ():
            for _ in range(options.earlier_sums):
                total[name] += read(spec.overhead[name])
    return total


def repeats_overhead(pod: Pod) -> bool:
    """Return whether a pod's requests grow each time upstream sums them.

    Upstream adds overhead to a pod-level request in place, which changes the pod if the request is stored as a decimal
    (fractions of binary units, more than 18 digits). An API server never writes amounts in these forms.
    """
    return bool(pod.spec.overhead and pod.spec.resources is not None and _repeated_overhead(pod, RequestOptions()))


def _repeated_overhead(pod: Pod, options: RequestOptions) -> list[str]:
    """Return the resources whose overhead upstream adds to a stored request again with each sum."""
    resources = pod.spec.resources
    resized = options.pod_level_vertical_scaling and options.use_status_resources and pod.status.resources is not None
    if resources is None or resized or options.skip_pod_level_resources:
        return []  # A resize creates a copy.
    return [
        name
        for name, quantity in resources.requests.items()
        if is_pod_level(name) and name in pod.spec.overhead and parse_quantity(quantity).is_decimal
    ]


def _sum_containers(pod: Pod, options: RequestOptions, read: Callable[[QuantityLike], Number]) -> dict[str, Number]:
    """Return the sums of the requests of all containers."""
    statuses = _statuses_by_name(pod) if options.use_status_resources else {}
    total = _fold(
        (_container_requests(pod, item, statuses.get(item.name), options, read) for item in pod.spec.containers),
        (
            (
                is_sidecar(item),
                _container_requests(pod, item, statuses.get(item.name) if is_sidecar(item) else None, options, read),
            )
            for item in pod.spec.init_containers
        ),
    )
    if options.use_node_allocatable_claims:
        for claim in pod.status.node_allocatable_resource_claim_statuses:
            _add(total, claim.resources, read)
    return total


def sum_container_limits(pod: Pod) -> dict[str, Quantity]:
    """Return the sums of the limits of all containers, as quantities; resizes are ignored."""
    return _fold(
        (_read_all(item.resources.limits, parse_quantity) for item in pod.spec.containers),
        ((is_sidecar(item), _read_all(item.resources.limits, parse_quantity)) for item in pod.spec.init_containers),
    )


def _fold(
    containers: Iterable[dict[str, Number]], init_containers: Iterable[tuple[bool, dict[str, Number]]]
) -> dict[str, Number]:
    """Return the maximum of a pod's requests over its lifecycle, given those of its containers.

    Containers run at the same time. Init containers run one after the other, each at the same time as the sidecars
    (those with the flag True) that started before it.
    """
    total: dict[str, Number] = {}
    for needs in containers:
        _merge_add(total, needs)
    sidecars: dict[str, Number] = {}
    largest: dict[str, Number] = {}
    for runs_on, needs in init_containers:
        if runs_on:
            _merge_add(total, needs)
            _merge_add(sidecars, needs)
            _merge_max(largest, sidecars)
        else:
            _merge_add(needs, sidecars)
            _merge_max(largest, needs)
    _merge_max(total, largest)
    return total


def _statuses_by_name(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    return {item.name: item for item in (*status.container_statuses, *status.init_container_statuses)}


def is_sidecar(container: Container) -> bool:
    """Return whether an init container is a sidecar, which keeps running next to the containers."""
    return container.restart_policy == "Always"


def _container_requests(
    pod: Pod,
    container: Container,
    status: ContainerStatus | None,
    options: RequestOptions,
    read: Callable[[QuantityLike], Number],
) -> dict[str, Number]:
    """Return the requests of one container, in a new dict."""
    resources = container.resources
    if status is not None and status.resources is not None:
        requests = _effective_requests(pod, resources, status.resources, status.allocated_resources, read)
    else:
        requests = _read_all(resources.requests, read)
    if options.missing_requests:
        for name, quantity in options.missing_requests.items():
            if name not in requests:
                requests[name] = read(quantity)
    return requests


def _effective_requests(
    pod: Pod,
    wanted: ResourceRequirements,
    actuated: ResourceRequirements,
    allocated: Quantities,
    read: Callable[[QuantityLike], Number],
) -> dict[str, Number]:
    """Return the maximum of the requested, actual and allocated resources; an infeasible resize request is ignored."""
    sources: list[Quantities] = [actuated.requests, allocated]
    if not is_resize_infeasible(pod):
        sources.insert(0, wanted.requests)
    effective: dict[str, Number] = {}
    for source in sources:
        _merge_max(effective, _read_all(source, read))
    return effective


def _add(total: dict[str, Number], more: Quantities, read: Callable[[QuantityLike], Number]) -> None:
    _merge_add(total, _read_all(more, read))


def _read_all(resources: Quantities, read: Callable[[QuantityLike], Number]) -> dict[str, Number]:
    return {name: read(quantity) for name, quantity in resources.items()}


def _merge_add(total: dict[str, Number], more: dict[str, Number]) -> None:
    for name, number in more.items():
        total[name] = total[name] + number if name in total else number


def _merge_max(total: dict[str, Number], more: dict[str, Number]) -> None:
    for name, number in more.items():
        if name not in total or number > total[name]:
            if isinstance(number, Quantity) and name in total:
                number = number.compared_with(total[name])
            total[name] = number


def has_pod_level_requests(pod: Pod) -> bool:
    """Return whether a pod has pod-level requests for CPU, memory or huge pages."""
    return pod.spec.resources is not None and any(is_pod_level(name) for name in pod.spec.resources.requests)


def is_resize_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet found the pod's pending resize infeasible; the first such condition decides."""
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def pod_priority(pod: Pod) -> int:
    """Return the pod's priority, 0 if it has none."""
    return pod.spec.priority or 0


# --- ports ---------------------------------------------------------------------------------------------------------


class HostPort(NamedTuple):
    """A host port of a pod, as NodePorts compares it."""

    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of a pod's sidecars, then those of its containers.

    An empty address becomes 0.0.0.0, an empty protocol TCP. Defaulting (`bayplan.objects.defaults`) must have turned
    the container ports of pods on the host network into host ports.
    """
    spec = pod.spec
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in _running_containers(spec.init_containers, spec.containers)
        if container.ports
        for port in container.ports
        if port.host_port > 0
    )


def _running_containers(init: tuple[Container, ...], containers: tuple[Container, ...]) -> Iterable[Container]:
    return (*filter(is_sidecar, init), *containers) if init else containers
