"""Conversion of resource amounts in objects to quantities, for limit ranges, quotas and the QoS class."""

from __future__ import annotations

from bayplan.apiserver.validation.formats import amount_of
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.limit_ranges import Limit
from bayplan.objects.pod_amounts import ContainerAmounts, PodAmounts
from bayplan.objects.quantity import Quantity
from bayplan.objects.resource_quotas import Quota, Scope

_OVER = ("Failed", "Succeeded")
_TERMS = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")


def amounts_of(resources: Document) -> dict[str, Quantity]:
    """Return the quantities of a resource list, by resource name."""
    return {name: amount_of(str(amount)) for name, amount in resources.items()}


def pod_amounts(pod: Document) -> PodAmounts:
    """Return the requests, limits and other facts about a pod that limit ranges and quotas need."""
    spec, status = part(pod, "spec"), part(pod, "status")
    stated = part(spec, "resources")
    deadline = spec.get("activeDeadlineSeconds")
    return PodAmounts(
        containers=_containers(spec, "containers"),
        init_containers=_containers(spec, "initContainers"),
        requests=amounts_of(part(stated, "requests")),
        limits=amounts_of(part(stated, "limits")),
        overhead=amounts_of(part(spec, "overhead")),
        best_effort=quality_of_service(pod) == "BestEffort",
        terminating=isinstance(deadline, int) and deadline >= 0,
        priority_class=str(spec.get("priorityClassName") or ""),
        cross_namespace=_looks_at_other_namespaces(part(spec, "affinity")),
        counted=status.get("phase") not in _OVER,
    )


def _containers(spec: Document, field: str) -> tuple[ContainerAmounts, ...]:
    found = []
    for container in parts(spec, field):
        resources = part(container, "resources")
        requests, limits = (amounts_of(part(resources, kind)) for kind in ("requests", "limits"))
        sidecar = field == "initContainers" and container.get("restartPolicy") == "Always"
        found.append(ContainerAmounts(str(container.get("name") or ""), requests, limits, sidecar))
    return tuple(found)


def _looks_at_other_namespaces(affinity: Document) -> bool:
    terms = [
        part(each, "podAffinityTerm") if name.startswith("preferred") else each
        for side in ("podAffinity", "podAntiAffinity")
        for name in _TERMS
        for each in parts(part(affinity, side), name)
    ]
    return any(texts(each, "namespaces") or each.get("namespaceSelector") is not None for each in terms)


def limits_of(limit_range: Document) -> list[Limit]:
    """Return the limits in a limit range."""
    names = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    return [
        Limit(str(each.get("type") or ""), *(amounts_of(part(each, name)) for name in names))
        for each in parts(part(limit_range, "spec"), "limits")
    ]


def quota_of(quota: Document) -> Quota:
    """Return a quota with `hard` and `used` from its status, because admission checks requests against the status."""
    spec, status = part(quota, "spec"), part(quota, "status")
    scopes = [Scope(name) for name in texts(spec, "scopes")]
    scopes += [
        Scope(str(each.get("scopeName")), str(each.get("operator")), tuple(texts(each, "values")))
        for each in parts(part(spec, "scopeSelector"), "matchExpressions")
    ]
    name = str(part(quota, "metadata").get("name") or "")
    return Quota(name, amounts_of(part(status, "hard")), amounts_of(part(status, "used")), tuple(scopes))


_COUNTED = ("cpu", "memory")


def quality_of_service(pod: Document) -> str:
    """Return the QoS class of a pod: ``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    spec = part(pod, "spec")
    owners = [part(each, "resources") for each in (*parts(spec, "containers"), *parts(spec, "initContainers"))]
    if spec.get("resources") is not None:
        owners = [part(spec, "resources")]
    if not any(_amounts(part(each, kind)) for each in owners for kind in ("requests", "limits")):
        return "BestEffort"
    for each in owners:
        limits = _amounts(part(each, "limits"))
        if len(limits) < len(_COUNTED):
            return "Burstable"
        if limits != _amounts(part(each, "requests")):
            return "Burstable"
    return "Guaranteed"


def _amounts(resources: Document) -> dict[str, Quantity]:
    """Return the amounts of CPU and memory in a resource list, without zeros."""
    found = {name: amount_of(str(resources[name])) for name in _COUNTED if name in resources}
    return {name: amount for name, amount in found.items() if amount.sign() > 0}
