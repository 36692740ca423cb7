"""A naive implementation of a pod's requests that takes the largest sum at any moment of the pod's life."""

import math
from collections.abc import Mapping
from fractions import Fraction

from bayplan.objects.pod import Container, Pod
from bayplan.objects.quantity import QuantityLike, nano_value


def asked(container: Container, name: str, missing: Mapping[str, QuantityLike]) -> Fraction | None:
    """Return a container's request of a resource, or that in `missing` if it has none, or None if neither has one."""
    quantity = container.resources.requests.get(name, missing.get(name))
    return None if quantity is None else Fraction(nano_value(quantity), 10**9)


def needs(pod: Pod, name: str, missing: Mapping[str, QuantityLike]) -> int:
    """Return the largest amount of a resource that a pod needs at any moment of its life, including overhead.

    At each moment either one init container runs with the sidecars started so far (a sidecar counts from its own
    start), or all containers run with all sidecars. CPU is in milli-CPU. Pod-level resources and the status are
    ignored.
    """
    moments: list[Fraction] = []
    sidecars: list[Container] = []
    for container in pod.spec.init_containers:
        running = [*sidecars, container]
        moments.append(sum((asked(item, name, missing) or Fraction(0) for item in running), Fraction(0)))
        if container.restart_policy == "Always":
            sidecars.append(container)
    running = [*sidecars, *pod.spec.containers]
    moments.append(sum((asked(item, name, missing) or Fraction(0) for item in running), Fraction(0)))
    overhead = Fraction(nano_value(pod.spec.overhead.get(name, 0)), 10**9)
    return math.ceil((max(moments) + overhead) * (1000 if name == "cpu" else 1))
