"""Shortages: the resources that a node lacks for a pod."""

from __future__ import annotations

from bayplan.objects.requests import Amounts

_MAX_SHORT = 1_000_000


def shortages(requests: Amounts, free: Amounts) -> Amounts:
    """Return the amount of each resource that a node lacks."""
    return {
        resource: wanted - max(free.get(resource, 0), 0)
        for resource, wanted in requests.items()
        if wanted > max(free.get(resource, 0), 0)
    }


def shortage(requests: Amounts, free: Amounts) -> int:
    """Return a node's shortage, summed over resources, each in thousandths of the pod's request for it."""
    missing = {name: wanted - free.get(name, 0) for name, wanted in requests.items() if wanted > 0}
    return sum(min(short * 1000 // requests[name], _MAX_SHORT) for name, short in missing.items() if short > 0)
