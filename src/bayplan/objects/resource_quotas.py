"""Resource quotas: the usage of objects, which quotas count an object, and whether the quotas allow it.

The rules work on amounts, and don't depend on documents or the API, so that the API server, its quota controller and
simulations share them.

Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from bayplan.objects.pod_amounts import Amounts, PodAmounts, add_amounts
from bayplan.objects.quantity import Quantity

_ONE, _ZERO = Quantity.parse("1"), Quantity.parse("0")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_REQUESTS, _LIMITS = "requests.", "limits."
_MUST_STATE = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_OF_PODS = frozenset(("pods", "count/pods", *_COMPUTE, *(p + n for p in (_REQUESTS, _LIMITS) for n in _COMPUTE)))
_HUGE_PAGES = "hugepages-"
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_BY_CLASS = ".storageclass.storage.k8s.io/"
_NATIVE = "kubernetes.io/"
_OLD_NAMES = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
"""Resources that quotas count both as ``count/...`` and under their bare names."""


class Scope(msgspec.Struct, frozen=True):
    """A requirement that an object must meet for a quota to count it."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


class Quota(msgspec.Struct, frozen=True):
    """A quota.

    Attributes:
        name: the name of the object.
        hard: the limits by resource.
        used: the used amounts; a resource without an entry has not been counted yet.
        scopes: the scopes; the quota counts objects that match all of them.
    """

    name: str
    hard: Amounts
    used: Amounts
    scopes: tuple[Scope, ...] = ()


class Usage(msgspec.Struct, frozen=True):
    """The usage of one object, and the quotas that may count it.

    Attributes:
        amounts: the amounts by resource.
        covers: the function that returns whether a quota's resource applies to objects of this kind.
        pod: the pod, for scopes, and to check containers that must specify amounts; None for other kinds.
        attributes_class: the VolumeAttributesClass of a claim, for scopes.
    """

    amounts: Amounts
    covers: Callable[[str], bool]
    pod: PodAmounts | None = None
    attributes_class: str | None = None


class Checked(msgspec.Struct, frozen=True):
    """The decision of quotas about an object.

    Attributes:
        problem: the error in upstream's words, or "".
        used: the new used amounts, by the names of the quotas that count the object.
        exceeded: the name of the quota that the object would exceed, or "".
    """

    problem: str = ""
    used: Mapping[str, Amounts] = {}
    exceeded: str = ""


# --- usage of objects -----------------------------------------------------------------------------------------------


def pod_usage(pod: PodAmounts) -> Usage:
    """Return the usage of a pod. A pod that is not `counted` uses only ``count/pods``."""
    amounts: dict[str, Quantity] = {"count/pods": _ONE}
    if pod.counted:
        requests, limits = (pod.total(kind, overhead=True) for kind in ("requests", "limits"))
        add_amounts(amounts, _pod_resources(requests, limits))
    return Usage(amounts, _covers_pods, pod)


def _pod_resources(requests: Amounts, limits: Amounts) -> dict[str, Quantity]:
    """Return amounts under the names that quotas have for them."""
    found: dict[str, Quantity] = {"pods": _ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(_HUGE_PAGES):
            found[name] = found[_REQUESTS + name] = amount
        elif _is_extended_for_quota(name):
            found[_REQUESTS + name] = amount
    for name, amount in limits.items():
        if name in _COMPUTE:
            found[_LIMITS + name] = amount
    return found


def _is_extended_for_quota(name: str) -> bool:
    """Return whether a resource name has a domain other than Kubernetes' own."""
    return "/" in name and _NATIVE not in name and not name.startswith(_REQUESTS)


def _covers_pods(resource: str) -> bool:
    if resource in _OF_PODS or resource.startswith((_HUGE_PAGES, _REQUESTS + _HUGE_PAGES)):
        return True
    return resource.startswith(_REQUESTS) and _is_extended_for_quota(resource.removeprefix(_REQUESTS))


def claim_usage(storage: Quantity | None, storage_class: str, attributes_class: str) -> Usage:
    """Return the usage of a PersistentVolumeClaim.

    Args:
        storage: the requested amount of storage.
        storage_class: the storage class, or "".
        attributes_class: the VolumeAttributesClass, or "".
    """
    amounts = {"persistentvolumeclaims": _ONE, "count/persistentvolumeclaims": _ONE}
    if storage_class:
        amounts[storage_class + _BY_CLASS + "persistentvolumeclaims"] = _ONE
    if storage is not None:
        amounts["requests.storage"] = storage
        if storage_class:
            amounts[storage_class + _BY_CLASS + "requests.storage"] = storage
    return Usage(amounts, _covers_claims, None, attributes_class)


def _covers_claims(resource: str) -> bool:
    if resource in (*_OF_CLAIMS, "count/persistentvolumeclaims"):
        return True
    return any(resource.endswith(_BY_CLASS + name) for name in _OF_CLAIMS)


def service_usage(kind: str, ports: int, fixed_ports: int, *, allocates_ports: bool) -> Usage:
    """Return the usage of a Service.

    Args:
        kind: the type of the Service.
        ports: the number of ports.
        fixed_ports: the number of ports with a node port.
        allocates_ports: whether a Service of type LoadBalancer gets node ports.
    """
    node_ports = 0
    if kind == "NodePort" or (kind == "LoadBalancer" and allocates_ports):
        node_ports = ports
    elif kind == "LoadBalancer":
        node_ports = fixed_ports
    amounts = {
        "count/services": _ONE,
        "services": _ONE,
        "services.loadbalancers": _ONE if kind == "LoadBalancer" else _ZERO,
        "services.nodeports": Quantity.parse(str(node_ports)),
    }
    return Usage(amounts, amounts.__contains__)


def object_usage(group: str, resource: str) -> Usage:
    """Return the usage of an object of any other kind: one object in the quota of its count."""
    name = f"count/{resource}.{group}" if group else f"count/{resource}"
    amounts = {name: _ONE}
    if not group and resource in _OLD_NAMES:
        amounts[resource] = _ONE
    return Usage(amounts, amounts.__contains__)


# --- which quotas count an object -----------------------------------------------------------------------------------


def counts(quota: Quota, usage: Usage) -> bool:
    """Return whether a quota counts an object with this usage."""
    if not any(usage.covers(name) for name in quota.hard):
        return False
    return all(_in_scope(scope, usage) for scope in quota.scopes)


def _in_scope(scope: Scope, usage: Usage) -> bool:
    pod = usage.pod
    if pod is None:
        return scope.name == "VolumeAttributesClass" and _selects(scope, usage.attributes_class)
    simple = {
        "Terminating": pod.terminating,
        "NotTerminating": not pod.terminating,
        "BestEffort": pod.best_effort,
        "NotBestEffort": not pod.best_effort,
        "CrossNamespacePodAffinity": pod.cross_namespace,
    }
    if scope.name == "PriorityClass":
        return _selects(scope, pod.priority_class)
    return simple.get(scope.name, False)


def _selects(scope: Scope, value: str | None) -> bool:
    if scope.operator == "In":
        return bool(value) and value in scope.values
    if scope.operator == "NotIn":
        return not value or value not in scope.values
    return bool(value) is (scope.operator == "Exists")


# --- checks ---------------------------------------------------------------------------------------------------------


def check_quotas(quotas: Iterable[Quota], usage: Usage, before: Usage | None) -> Checked:
    """Return whether all quotas allow an object, and their used amounts including the object.

    Args:
        quotas: the quotas of the namespace, sorted by name.
        usage: the usage of the object.
        before: the usage of the old object; None for a new object.
    """
    counting: list[Quota] = []
    for quota in quotas:
        if not counts(quota, usage):
            continue
        restricted = [name for name in quota.hard if usage.covers(name)]
        missing = _unstated(restricted, usage.pod)
        if missing:
            return Checked(f"failed quota: {quota.name}: must specify {missing}")
        if any(name not in quota.used for name in restricted):
            return Checked(f"status unknown for quota: {quota.name}, resources: {','.join(sorted(restricted))}")
        counting.append(quota)
    negative = sorted(name for name, amount in usage.amounts.items() if amount.sign() < 0)
    if negative:
        return Checked(f"quota usage is negative for resource(s): {','.join(negative)}")
    used: dict[str, Amounts] = {}
    for quota in counting:
        wanted = _delta(usage.amounts, before.amounts if before is not None and counts(quota, before) else {})
        requested = {name: amount for name, amount in wanted.items() if name in quota.hard and amount.sign()}
        if not any(amount.sign() for amount in wanted.values()):
            continue
        total = dict(quota.used)
        add_amounts(total, requested)
        exceeded = [name for name in requested if quota.hard[name] < total[name]]
        if exceeded:
            texts = (_listed(each, exceeded) for each in (requested, quota.used, quota.hard))
            parts = zip(("requested", "used", "limited"), texts, strict=True)
            text = f"exceeded quota: {quota.name}, " + ", ".join(f"{word}: {text}" for word, text in parts)
            return Checked(text, exceeded=quota.name)
        used[quota.name] = total
    return Checked(used=used)


def _delta(amounts: Amounts, before: Amounts) -> dict[str, Quantity]:
    """Return the added amounts of an update. Decreases count as 0 until the quota controller recounts."""
    found = {}
    for name, amount in amounts.items():
        added = amount - before[name] if name in before else amount
        found[name] = added if added.sign() > 0 else _ZERO
    return found if before else dict(amounts)


def _unstated(restricted: Iterable[str], pod: PodAmounts | None) -> str:
    """Return upstream's text about containers that lack amounts required by quotas, or ""."""
    if pod is None or pod.requests or pod.limits:
        return ""
    required = sorted(_MUST_STATE.intersection(restricted))
    missing: dict[str, list[str]] = {}
    for container in (*pod.containers, *pod.init_containers):
        stated = _pod_resources(container.requests, container.limits)
        for name in required:
            if name not in stated:
                missing.setdefault(name, []).append(container.name)
    return "; ".join(f"{name} for: {','.join(sorted(set(names)))}" for name, names in sorted(missing.items()))


def _listed(amounts: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in sorted(names) if name in amounts)


def recount(quota: Quota, usages: Iterable[Usage]) -> dict[str, Quantity]:
    """Return the used amounts of a quota's resources.

    Args:
        quota: the quota with the desired maximum amounts.
        usages: the usages of all objects in the namespace that a quota may count.
    """
    total = dict.fromkeys(sorted(quota.hard), _ZERO)
    for usage in usages:
        if counts(quota, usage):
            for name, amount in usage.amounts.items():
                if name in total and (usage.pod is None or usage.covers(name)):
                    total[name] = total[name] + amount
    return total
