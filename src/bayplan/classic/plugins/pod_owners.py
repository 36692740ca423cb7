"""Services and controllers of a pod as the classic scheduler finds them: by their selectors, sorted by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from bayplan.classic.plugins.label_selectors import selector_from_set
from bayplan.objects.meta import KubernetesObject, LabelSelector
from bayplan.objects.selectors import Labels, Selector, SelectorError, compile_label_map, compile_label_selector
from bayplan.objects.service import Service
from bayplan.objects.workloads import ReplicaSet, ReplicationController, StatefulSet
from bayplan.state.object_catalog import ObjectCatalog

OWNER_KINDS = (Service, ReplicationController, ReplicaSet, StatefulSet)

K = TypeVar("K", bound=KubernetesObject)


def owners_version(catalog: ObjectCatalog) -> tuple[int, ...]:
    """Return a value that changes when a Service or controller is written."""
    return tuple(catalog.version(kind) for kind in OWNER_KINDS)


def services_of(namespace: str, labels: Labels, catalog: ObjectCatalog) -> list[Service]:
    """Return the services that select a pod.

    A service without a selector selects no pods; a service with an empty selector selects all pods.
    """
    return [
        service
        for service in _by_name(Service, namespace, catalog)
        if service.spec.selector is not None and compile_label_map(service.spec.selector).matches(labels)
    ]


def first_service_selector(namespace: str, labels: Labels, catalog: ObjectCatalog) -> Selector | None:
    """Return the selector of a pod's first service by name, or None if it has no service."""
    services = services_of(namespace, labels, catalog)
    return selector_from_set(services[0].spec.selector) if services else None


def selectors_of(namespace: str, labels: Labels, catalog: ObjectCatalog) -> tuple[Selector, ...]:
    """Return the selectors of a pod's services and controllers. A pod without labels has no controllers."""
    selectors = [selector_from_set(service.spec.selector) for service in services_of(namespace, labels, catalog)]
    if not labels:
        return tuple(selectors)
    for controller in _by_name(ReplicationController, namespace, catalog):
        if controller.spec.selector and compile_label_map(controller.spec.selector).matches(labels):
            selectors.append(selector_from_set(controller.spec.selector))
    replica_sets = _by_name(ReplicaSet, namespace, catalog)
    stateful_sets = _by_name(StatefulSet, namespace, catalog)
    selectors += _matching([item.spec.selector for item in replica_sets], labels)
    selectors += _matching([item.spec.selector for item in stateful_sets], labels)
    return tuple(selectors)


def _matching(written: Sequence[LabelSelector | None], labels: Labels) -> list[Selector]:
    """Return the selectors that match and are not empty.

    As upstream, an invalid selector invalidates all selectors of the same kind.
    """
    try:
        compiled = [compile_label_selector(selector) for selector in written]
    except SelectorError:
        return []
    return [selector for selector in compiled if not selector.matches_everything and selector.matches(labels)]


def _by_name(kind: type[K], namespace: str, catalog: ObjectCatalog) -> list[K]:
    found = [item for item in catalog.all(kind) if item.metadata.namespace == namespace]
    return sorted(found, key=lambda item: item.metadata.name)
