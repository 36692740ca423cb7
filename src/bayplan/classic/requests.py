"""Requests of pods as the scheduler of Kubernetes 1.16 computes them: per container, each rounded up separately.

A pod's request is the sum of its containers' requests, or that of its largest init container if it is larger. Sidecars,
resizes and pod-level resources don't exist in this release. Units are as in `bayplan.objects.requests`. Source: the behavior of
k8s.io/kubernetes/pkg/scheduler/nodeinfo and algorithm/priorities v1.16.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bayplan.objects.pod import Container, Pod
from bayplan.objects.quantity import milli_value, value, wrap_int64
from bayplan.objects.requests import AccountedRequests, RequestGates
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from bayplan.objects.simple_sums import DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, Amounts, Quantities

MISSING = {CPU: DEFAULT_CPU_MILLI, MEMORY: DEFAULT_MEMORY_BYTES}
"""The amounts that scores assume for a container without a request."""


def classic_accounting(*, pod_overhead: bool) -> Callable[[Pod, RequestGates, int], AccountedRequests]:
    """Return the function that computes the requests of pods for a classic scheduler's state.

    Args:
        pod_overhead: the gate PodOverhead.
    """

    def account(pod: Pod, gates: RequestGates, earlier_sums: int) -> AccountedRequests:
        requests = resource_request(pod, pod_overhead=pod_overhead)
        cpu_milli, memory_bytes = (_without_overhead(pod, name) for name in (CPU, MEMORY))
        if pod_overhead:
            overhead = pod.spec.overhead
            cpu_milli = wrap_int64(cpu_milli + (amount(overhead, CPU) if CPU in overhead else 0))
            memory_bytes = wrap_int64(memory_bytes + (amount(overhead, MEMORY) if MEMORY in overhead else 0))
        return AccountedRequests(requests, cpu_milli, memory_bytes)

    return account


def resource_request(pod: Pod, *, pod_overhead: bool) -> Amounts:
    """Return the resources that a pod requires on its node: the sum of its containers, or its largest init container.

    CPU, memory and ephemeral storage are always included, scalar resources if any container names them.
    """
    requests = _most(pod.spec.containers, pod.spec.init_containers, lambda container: container.resources.requests)
    if pod_overhead and pod.spec.overhead:
        _add(requests, pod.spec.overhead)
    return requests


def resource_limits(pod: Pod) -> Amounts:
    """Return the limits of a pod, computed like `resource_request`."""
    return _most(pod.spec.containers, pod.spec.init_containers, lambda container: container.resources.limits)


def scored_pod_request(pod: Pod, name: str, *, pod_overhead: bool) -> int:
    """Return a new pod's request as scores count it, with defaults for containers without a request."""
    total = _without_overhead(pod, name)
    if pod_overhead and name in pod.spec.overhead:
        # Upstream adds whole cores here, although all other CPU amounts are in thousandths.
        total = wrap_int64(total + value(pod.spec.overhead[name]))
    return total


def _without_overhead(pod: Pod, name: str) -> int:
    total = 0
    for container in pod.spec.containers:
        total = wrap_int64(total + scored_request(container.resources.requests, name))
    for container in pod.spec.init_containers:
        total = max(total, scored_request(container.resources.requests, name))
    return total


def scored_request(requested: Quantities, name: str) -> int:
    """Return a container's request as scores count it: the default if it has none. An explicit 0 is a request."""
    return amount(requested, name) if name in requested else MISSING.get(name, 0)


def amount(quantities: Quantities, name: str) -> int:
    """Return the amount of a resource: in milli-CPU for CPU, else the plain value, rounded up."""
    return milli_value(quantities[name]) if name == CPU else value(quantities[name])


def _most(
    containers: Iterable[Container], init_containers: Iterable[Container], read: Callable[[Container], Quantities]
) -> Amounts:
    total: Amounts = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0}
    for container in containers:
        _add(total, read(container))
    for container in init_containers:
        quantities = read(container)
        for name in quantities:
            if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name):
                requested = amount(quantities, name)
                if requested > total.get(name, 0):
                    total[name] = requested
    return total


def _add(total: Amounts, more: Quantities) -> None:
    for name in more:
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name):
            total[name] = wrap_int64(total.get(name, 0) + amount(more, name))
