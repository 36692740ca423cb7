"""Conversion between the served and the stored version of an object, both built-in and by webhooks.

Two built-in kinds are served in two versions and stored in one: events and HorizontalPodAutoscalers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.apiserver.kinds.autoscaler_conversion import autoscaler_from_v2, autoscaler_to_v2
from bayplan.base.plain_data import Document

if TYPE_CHECKING:
    from bayplan.apiserver.model.resources import Resource


# Field names that differ between events.k8s.io/v1 and core/v1.
_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_STORED_EVENT_FIELDS = {stored: served for served, stored in _EVENT_FIELDS.items()}
# Fields that core/v1 includes when they are empty, and events.k8s.io/v1 omits.
_SHOWN_IN_CORE: Document = {"reportingComponent": "", "reportingInstance": "", "involvedObject": {}}


def is_converted(resource: Resource) -> bool:
    """Return whether the objects of a resource are stored in a different version."""
    return resource.converter is not None or (resource.group, resource.version, resource.name) in _CONVERTERS


def is_renamed(resource: Resource) -> bool:
    """Return whether a built-in kind is stored in a different version, whose fields have other names."""
    return (resource.group, resource.version, resource.name) in _CONVERTERS


def to_storage(resource: Resource, document: Document) -> Document:
    """Return an object in the version that strategies and validation process, without calling a webhook.

    Built-in kinds are converted to the stored version. Custom resources stay in the version of the request.
    """
    converters = _CONVERTERS.get((resource.group, resource.version, resource.name))
    return document if converters is None else converters[0](document)


def from_storage(resource: Resource, document: Document) -> Document:
    """Return an object in the version of a resource: the inverse of `to_storage`."""
    converters = _CONVERTERS.get((resource.group, resource.version, resource.name))
    return document if converters is None else converters[1](document)


def stored_form(resource: Resource, document: Document) -> Document:
    """Return an object in the stored version. Raise `CallsNeededError` if a webhook must convert it first."""
    return to_storage(resource, document) if resource.converter is None else resource.converter.to_storage(document)


def served_form(resource: Resource, document: Document) -> Document:
    """Return a stored object in the version of a resource.

    Raise `CallsNeededError` if a webhook must convert it first.
    """
    return from_storage(resource, document) if resource.converter is None else resource.converter.from_storage(document)


def _event_to_core(event: Document) -> Document:
    return _SHOWN_IN_CORE | {_EVENT_FIELDS.get(name, name): value for name, value in event.items()}


def _event_from_core(event: Document) -> Document:
    renamed = {_STORED_EVENT_FIELDS.get(name, name): value for name, value in event.items()}
    for name in ("reportingController", "reportingInstance"):
        if not renamed.get(name):
            renamed.pop(name, None)
    return renamed


_CONVERTERS = {
    ("events.k8s.io", "v1", "events"): (_event_to_core, _event_from_core),
    ("autoscaling", "v1", "horizontalpodautoscalers"): (autoscaler_to_v2, autoscaler_from_v2),
}
