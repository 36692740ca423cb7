"""Requests and limits of a pod's containers, in a form that documents and typed pods share.

Limit ranges and resource quotas read no other resource fields of a pod. The sums are upstream's: those of containers
and sidecars together, or the maximum while init containers run, if that is higher; pod-level amounts replace them for
the resources that support pod-level amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.objects.quantity import Quantity

Amounts = Mapping[str, Quantity]
POD_LEVEL = ("cpu", "memory")
"""Resources that support pod-level amounts, in addition to huge pages."""
_HUGE_PAGES = "hugepages-"


class ContainerAmounts(msgspec.Struct, frozen=True):
    """The resources of one container.

    Attributes:
        name: the name of the container.
        requests, limits: the amounts by resource.
        sidecar: whether it is an init container that keeps running beside the containers.
    """

    name: str
    requests: Amounts
    limits: Amounts
    sidecar: bool = False


class PodAmounts(msgspec.Struct, frozen=True):
    """The resources of a pod.

    Attributes:
        containers: the containers, in order.
        init_containers: the init containers, in order.
        requests, limits: the pod-level requests and limits.
        overhead: the overhead of the runtime class.
        best_effort: whether the pod's quality-of-service class is BestEffort.
        terminating: whether the pod has an active deadline (the scope Terminating).
        priority_class: the name of the priority class, or "".
        cross_namespace: whether an affinity term of the pod refers to other namespaces.
        counted: whether the pod counts: it is neither finished nor past its deletion grace period.
    """

    containers: tuple[ContainerAmounts, ...] = ()
    init_containers: tuple[ContainerAmounts, ...] = ()
    requests: Amounts = {}
    limits: Amounts = {}
    overhead: Amounts = {}
    best_effort: bool = False
    terminating: bool = False
    priority_class: str = ""
    cross_namespace: bool = False
    counted: bool = True

    def total(self, kind: str, *, overhead: bool) -> dict[str, Quantity]:
        """Return the total ``requests`` or ``limits`` of the pod.

        Args:
            kind: the amounts to sum, ``requests`` or ``limits``.
            overhead: whether to add the overhead of the runtime class; for limits, only to resources that have one.
        """
        found = _sum(self.containers, self.init_containers, kind)
        stated: Amounts = getattr(self, kind)
        found |= {name: amount for name, amount in stated.items() if name in POD_LEVEL or name.startswith(_HUGE_PAGES)}
        if overhead:
            for name, amount in self.overhead.items():
                if kind == "requests" or (name in found and found[name].sign()):
                    found[name] = found[name] + amount if name in found else amount
        return found


def _sum(
    containers: Iterable[ContainerAmounts], init_containers: Iterable[ContainerAmounts], kind: str
) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for container in containers:
        add_amounts(total, getattr(container, kind))
    sidecars: dict[str, Quantity] = {}
    starting: list[dict[str, Quantity]] = []
    for container in init_containers:
        amounts: Amounts = getattr(container, kind)
        if container.sidecar:
            add_amounts(total, amounts)
            add_amounts(sidecars, amounts)
            starting.append(dict(sidecars))
        else:
            now = dict(sidecars)
            add_amounts(now, amounts)
            starting.append(now)
    for needed in starting:
        for name, amount in needed.items():
            total[name] = max(total[name], amount) if name in total else amount
    return total


def add_amounts(total: dict[str, Quantity], amounts: Amounts) -> None:
    """Add amounts to a total, in place."""
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount
