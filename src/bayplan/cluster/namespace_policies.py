"""Limit ranges and resource quotas of a virtual cluster: the API server's rules, applied to typed pods.

Usage is computed from the pods in the store, because no component of the virtual cluster writes the status of quotas.
Only pods are counted.

Source: `bayplan.objects.limit_ranges` and `bayplan.objects.resource_quotas` implement the rules.
"""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.cluster.store import DELETED, ChangeEvent, ObjectStore
from bayplan.objects.affinity import PodAffinityTerm
from bayplan.objects.limit_ranges import Limit, fill_in, joined, pod_problems, with_defaults
from bayplan.objects.meta import ResourceList
from bayplan.objects.pod import Container, Pod
from bayplan.objects.pod_amounts import Amounts, ContainerAmounts, PodAmounts
from bayplan.objects.pod_defaults import default_pod
from bayplan.objects.policy import LimitRange, ResourceQuota
from bayplan.objects.quantity import Quantity
from bayplan.objects.resource_quotas import Quota, Scope, Usage, check_quotas, counts, pod_usage, recount

_OVER = ("Failed", "Succeeded")
_FOR_QUALITY = ("cpu", "memory")


class PodForbidden(InputError):
    """A limit range or a quota forbids a new pod; `got` is ``forbidden: `` and upstream's reason.

    Attributes:
        exceeded: the name of the quota that the pod exceeds, or "".
    """

    exceeded = ""

    def _text(self) -> str:
        return f"{self.what} is {self.got}"


class NamespacePolicies:
    """The limit ranges and quotas of a store.

    Args:
        store: the store with the limit ranges, the quotas and the pods.

    Attributes:
        counts: whether there are quotas. If not, changes of pods are ignored.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.counts = False
        self._limits: dict[str, list[Limit]] | None = None
        self._quotas: dict[str, list[Quota]] = {}
        self._usages: dict[str, dict[str, Usage]] = {}
        self._totals: dict[str, dict[str, dict[str, Quantity]]] = {}

    def forget(self) -> None:
        """Drop everything cached, because a limit range or quota has changed."""
        self._limits = None
        self.counts = False
        self._usages.clear()
        self._totals.clear()

    def _read(self) -> dict[str, list[Limit]]:
        limits: dict[str, list[Limit]] = {}
        for each in sorted(self._store.all(LimitRange), key=lambda item: item.key):
            limits.setdefault(each.metadata.namespace, []).extend(_limits_of(each))
        self._quotas = {}
        for quota in sorted(self._store.all(ResourceQuota), key=lambda item: item.key):
            self._quotas.setdefault(quota.metadata.namespace, []).append(_quota_of(quota))
        self.counts = bool(self._quotas)
        self._limits = limits
        return limits

    def has_limits(self, namespace: str) -> bool:
        """Return whether a limit range applies to a namespace."""
        limits = self._limits if self._limits is not None else self._read()
        return namespace in limits

    def has_quotas(self, namespace: str) -> bool:
        """Return whether a quota applies to a namespace."""
        if self._limits is None:
            self._read()
        return namespace in self._quotas

    def limited(self, pod: Pod) -> Pod:
        """Return a pod with the defaults of limit ranges.

        Raises:
            InputError: the pod requests less or more than limit ranges allow.
        """
        limits = (self._limits or self._read())[pod.metadata.namespace]
        pod = replace(pod, spec=default_pod(pod).spec)
        filled = fill_in(limits, _amounts_of(pod)).pod
        problems = pod_problems(limits, filled)
        if problems:
            raise PodForbidden(f"Pod {pod.key}", got=f"forbidden: {joined(problems)}")
        spec = replace(
            pod.spec,
            containers=_with_amounts(pod.spec.containers, filled.containers),
            init_containers=_with_amounts(pod.spec.init_containers, filled.init_containers),
        )
        return replace(pod, spec=spec)

    def charge(self, pod: Pod) -> None:
        """Add a new pod to the usage of its namespace's quotas.

        Raises:
            InputError: the pod exceeds a quota.
        """
        usage, namespace = self.check(pod), pod.metadata.namespace
        if usage is not None:
            self._put(self._in_use(namespace), pod.key, namespace, usage)

    def check(self, pod: Pod) -> Usage | None:
        """Return the usage of a new pod, or None if its namespace has no quotas.

        Raises:
            InputError: the pod exceeds a quota.
        """
        if self._limits is None:
            self._read()
        quotas = self._quotas.get(pod.metadata.namespace)
        if not quotas:
            return None
        namespace = pod.metadata.namespace
        self._in_use(namespace)
        totals = self._totals[namespace]
        usage = pod_usage(_amounts_of(pod))
        checked = check_quotas([replace(each, used=totals[each.name]) for each in quotas], usage, None)
        if checked.problem:
            refusal = PodForbidden(f"Pod {pod.key}", got=f"forbidden: {checked.problem}")
            refusal.exceeded = checked.exceeded
            raise refusal
        return usage

    def _in_use(self, namespace: str) -> dict[str, Usage]:
        """Return the usage of a namespace's pods, by key. If it is not cached, compute it and the totals of the quotas."""
        found = self._usages.get(namespace)
        if found is None:
            found = self._usages[namespace] = {}
            quotas = self._quotas.get(namespace, ())
            self._totals[namespace] = {quota.name: recount(quota, ()) for quota in quotas}
            for pod in self._store.pods.values():
                if pod.metadata.namespace == namespace:
                    self._put(found, pod.key, namespace, pod_usage(_amounts_of(pod)))
        return found

    def _put(self, usages: dict[str, Usage], key: str, namespace: str, usage: Usage | None) -> None:
        """Record the usage of a pod (None if it was deleted), and update the totals of the quotas."""
        before = usages.pop(key, None)
        totals = self._totals[namespace]
        for quota in self._quotas.get(namespace, ()):
            total = totals[quota.name]
            for each, adds in ((before, False), (usage, True)):
                if each is not None and counts(quota, each):
                    for name, amount in each.amounts.items():
                        if name in total and each.covers(name):
                            total[name] = total[name] + amount if adds else total[name] - amount
        if usage is not None:
            usages[key] = usage

    def frees_quota(self, event: ChangeEvent) -> bool:
        """Update the usages after a write of a pod. Return whether the write frees amounts of a quota."""
        pod = event.object
        if not self.counts or not isinstance(pod, Pod):
            return False
        namespace = pod.metadata.namespace
        usages = self._usages.get(namespace)
        if usages is None:
            return namespace in self._quotas and event.type == DELETED
        if event.type == DELETED:
            self._put(usages, pod.key, namespace, None)
            return True
        ended = pod.status.phase in _OVER
        if pod.key not in usages or (ended and "pods" in usages[pod.key].amounts):
            self._put(usages, pod.key, namespace, pod_usage(_amounts_of(pod)))
            return ended
        return False


def _limits_of(limit_range: LimitRange) -> list[Limit]:
    return [
        with_defaults(
            Limit(
                each.type,
                _amounts(each.min),
                _amounts(each.max),
                _amounts(each.default),
                _amounts(each.default_request),
                _amounts(each.max_limit_request_ratio),
            )
        )
        for each in limit_range.spec.limits
    ]


def _quota_of(quota: ResourceQuota) -> Quota:
    spec = quota.spec
    scopes = [Scope(name) for name in spec.scopes]
    if spec.scope_selector is not None:
        scopes += [Scope(each.scope_name, each.operator, each.values) for each in spec.scope_selector.match_expressions]
    return Quota(quota.metadata.name, _amounts(spec.hard), {}, tuple(scopes))


def _amounts(resources: ResourceList) -> dict[str, Quantity]:
    return {name: Quantity.parse(str(amount)) for name, amount in resources.items()}


def _amounts_of(pod: Pod) -> PodAmounts:
    spec = pod.spec
    stated = spec.resources
    containers = tuple(_container(each) for each in spec.containers)
    init_containers = tuple(_container(each, sidecar=each.restart_policy == "Always") for each in spec.init_containers)
    requests = _amounts(stated.requests) if stated is not None else {}
    limits = _amounts(stated.limits) if stated is not None else {}
    listed: list[Amounts] = [requests, limits]
    if not requests and not limits:
        listed = [part for each in (*containers, *init_containers) for part in (each.requests, each.limits)]
    return PodAmounts(
        containers=containers,
        init_containers=init_containers,
        requests=requests,
        limits=limits,
        overhead=_amounts(spec.overhead),
        best_effort=not any(each[name].sign() > 0 for each in listed for name in _FOR_QUALITY if name in each),
        terminating=spec.active_deadline_seconds is not None,
        priority_class=spec.priority_class_name,
        cross_namespace=any(term.namespaces or term.namespace_selector is not None for term in _terms(pod)),
        counted=pod.status.phase not in _OVER,
    )


def _container(container: Container, *, sidecar: bool = False) -> ContainerAmounts:
    resources = container.resources
    return ContainerAmounts(container.name, _amounts(resources.requests), _amounts(resources.limits), sidecar)


def _with_amounts(containers: tuple[Container, ...], amounts: tuple[ContainerAmounts, ...]) -> tuple[Container, ...]:
    """Return containers in which missing requests and limits are filled in from `amounts`."""
    found = []
    for container, filled in zip(containers, amounts, strict=True):
        resources = container.resources
        requests, limits = (
            {**given, **{name: str(amount) for name, amount in wanted.items() if name not in given}}
            for given, wanted in ((resources.requests, filled.requests), (resources.limits, filled.limits))
        )
        found.append(replace(container, resources=replace(resources, requests=requests, limits=limits)))
    return tuple(found)


def _terms(pod: Pod) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity
    terms: list[PodAffinityTerm] = []
    if affinity is not None:
        for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if side is not None:
                terms += side.required_during_scheduling_ignored_during_execution
                terms += [each.pod_affinity_term for each in side.preferred_during_scheduling_ignored_during_execution]
    return terms
