"""The quality-of-service class of a pod: from the requests and limits of its containers for cpu and memory."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import part, parts
from bayplan.apiserver.validation.formats import amount_of
from bayplan.base.plain_data import Document
from bayplan.objects.quantity import Quantity

_COUNTED = ("cpu", "memory")


def quality_of_service(pod: Document) -> str:
    """Return ``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    spec = part(pod, "spec")
    owners = [part(each, "resources") for each in (*parts(spec, "containers"), *parts(spec, "initContainers"))]
    if part(spec, "resources"):
        owners = [part(spec, "resources")]
    requests = [_amounts(part(each, "requests")) for each in owners]
    limits = [_amounts(part(each, "limits")) for each in owners]
    if not any(requests) and not any(limits):
        return "BestEffort"
    guaranteed = all(set(each) == set(_COUNTED) for each in limits)
    same = all(
        all(limit.get(name) == amount for name, amount in each.items())
        for each, limit in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if guaranteed and same and all(requests) else "Burstable"


def _amounts(resources: Document) -> dict[str, Quantity]:
    """Return what is asked for of the resources that count, without zeros."""
    found = {name: amount_of(str(resources[name])) for name in _COUNTED if name in resources}
    return {name: amount for name, amount in found.items() if amount.sign() > 0}
