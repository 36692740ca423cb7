"""Kinds that are served in two versions and stored in one: events of two groups, autoscalers of two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.apiserver.kinds.autoscaler_conversion import autoscaler_from_v2, autoscaler_to_v2
from bayplan.base.plain_data import Document

if TYPE_CHECKING:
    from bayplan.apiserver.model.resources import Resource


# events.k8s.io/v1 to core/v1; all other fields have the same name in both.
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
# Fields that core/v1 includes when empty and events.k8s.io/v1 omits, and vice versa.
_SHOWN_IN_CORE: Document = {"reportingComponent": "", "reportingInstance": "", "involvedObject": {}}


def is_converted(resource: Resource) -> bool:
    """Return whether objects of a resource are stored in a different version."""
    return resource.converter is not None or (resource.group, resource.version, resource.name) in _CONVERTERS


def is_renamed(resource: Resource) -> bool:
    """Return whether a built-in kind is stored under the names of another version."""
    return (resource.group, resource.version, resource.name) in _CONVERTERS


def to_storage(resource: Resource, document: Document) -> Document:
    """Return a document in the version that is processed internally; for custom resources, the version of the request."""
    converters = _CONVERTERS.get((resource.group, resource.version, resource.name))
    return document if converters is None else converters[0](document)


def from_storage(resource: Resource, document: Document) -> Document:
    """Return a document in the version of a resource again."""
    converters = _CONVERTERS.get((resource.group, resource.version, resource.name))
    return document if converters is None else converters[1](document)


def stored_form(resource: Resource, document: Document) -> Document:
    """Return the stored form of a document; raise `CallsNeededError` if a webhook must convert it first."""
    return to_storage(resource, document) if resource.converter is None else resource.converter.to_storage(document)


def served_form(resource: Resource, document: Document) -> Document:
    """Return a stored document in the version of a resource; raise `CallsNeededError` if a webhook must convert it first."""
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
