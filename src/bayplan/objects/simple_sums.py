"""Fast sums of container requests, for the many pods whose requests depend only on their containers.

`bayplan.objects.requests` contains the full computation, and tries this one first.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.objects.pod import Pod
from bayplan.objects.quantity import QuantityLike, nano_value
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar

DEFAULT_CPU_MILLI = 100
"""The CPU request that scores assume for a container without one."""
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024
"""The memory request that scores assume for a container without one."""

Amounts = dict[str, int]
Quantities = Mapping[str, QuantityLike]

_MAX_INT64 = 2**63 - 1
NON_ZERO: Quantities = {CPU: f"{DEFAULT_CPU_MILLI}m", MEMORY: DEFAULT_MEMORY_BYTES}
"""The requests that scores assume for containers without requests."""


def rounded_up(sums: Mapping[str, int]) -> Amounts | None:
    """Return sums of nanos as int64 (CPU in milli-CPU), rounded up; None if one is negative or overflows int64."""
    amounts: Amounts = {}
    for name, nanos in sums.items():
        amount = -(-nanos // (1_000_000 if name == CPU else 1_000_000_000))
        if nanos < 0 or amount > _MAX_INT64:
            return None
        amounts[name] = amount
    return amounts


def on_nodes(amounts: Amounts) -> Amounts:
    """Return the amounts of the resources that nodes count, except `pods`."""
    return {
        name: amount
        for name, amount in amounts.items()
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or (name != PODS and is_scalar(name))
    }


class SimpleSum(msgspec.Struct, frozen=True, gc=False):
    """The sums of a pod's container requests, if its requests depend only on its containers.

    Attributes:
        nanos: the sum in nanos, by resource.
        silent: the number of containers without a request for CPU, and for memory.
        whole: the sums as int64; None if one is negative or overflows int64.
        counted: the sums with the defaults of `NON_ZERO`, as int64, or None.
        on_nodes: the sums in `whole` of resources that nodes count, or None.
    """

    nanos: dict[str, int]
    silent: dict[str, int]
    whole: Amounts | None
    counted: Amounts | None
    on_nodes: Amounts | None

    def amounts(self, missing: Quantities | None) -> Amounts | None:
        """Return the sums as int64, in a new dict; None if one is negative or overflows.

        `missing`: the amounts for containers without requests, if any.
        """
        if missing is None or missing is NON_ZERO:
            known = self.whole if missing is None else self.counted
            return None if known is None else known.copy()
        return rounded_up(_with_missing(self.nanos, self.silent, missing))


def _with_missing(nanos: dict[str, int], silent: dict[str, int], missing: Quantities) -> dict[str, int]:
    """Return sums with the default amounts for containers without requests for CPU or memory."""
    sums = dict(nanos)
    for name, quantity in missing.items():
        if silent[name]:
            sums[name] = sums.get(name, 0) + silent[name] * nano_value(quantity)
    return sums


class SimpleSums:
    """Caches the summed requests of the last pod, because several plugins in a row need them for the same pod."""

    def __init__(self) -> None:
        self._known: tuple[object, object, SimpleSum | None] = (None, None, None)

    def of(self, pod: Pod) -> SimpleSum | None:
        """Return the sums of a pod; None if its requests depend on more than its containers."""
        spec, known = pod.spec, self._known
        if known[0] is not spec or known[1] is not pod.status:
            known = self._known = (spec, pod.status, self._make(pod))
        return known[2]

    def _make(self, pod: Pod) -> SimpleSum | None:
        spec, status = pod.spec, pod.status
        if spec.init_containers or spec.resources is not None or spec.overhead:
            return None
        if (
            status.container_statuses
            or status.init_container_statuses
            or status.node_allocatable_resource_claim_statuses
        ):
            return None
        nanos: dict[str, int] = {}
        silent = {CPU: 0, MEMORY: 0}
        for container in spec.containers:
            requests = container.resources.requests
            for name, quantity in requests.items():
                nanos[name] = nanos.get(name, 0) + nano_value(quantity)
            if CPU not in requests or MEMORY not in requests:
                silent[CPU] += CPU not in requests
                silent[MEMORY] += MEMORY not in requests
        counted = whole = rounded_up(nanos)
        if silent[CPU] or silent[MEMORY]:
            counted = rounded_up(_with_missing(nanos, silent, NON_ZERO))
        return SimpleSum(nanos, silent, whole, counted, None if whole is None else on_nodes(whole))


SIMPLE_SUMS = SimpleSums()
