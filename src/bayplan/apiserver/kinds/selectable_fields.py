"""Fields that field selectors support in addition to name and namespace, and their values in objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.base.plain_data import Document, parts

if TYPE_CHECKING:
    from bayplan.apiserver.model.resources import Resource

_EVENT = {
    "involvedObject.kind": ("involvedObject", "kind"),
    "involvedObject.namespace": ("involvedObject", "namespace"),
    "involvedObject.name": ("involvedObject", "name"),
    "involvedObject.uid": ("involvedObject", "uid"),
    "involvedObject.apiVersion": ("involvedObject", "apiVersion"),
    "involvedObject.resourceVersion": ("involvedObject", "resourceVersion"),
    "involvedObject.fieldPath": ("involvedObject", "fieldPath"),
    "reason": ("reason",),
    "reportingComponent": ("reportingComponent",),
    "source": ("source", "component"),
    "type": ("type",),
}
_FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "pods": {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "spec.hostNetwork": ("spec", "hostNetwork"),
        "status.phase": ("status", "phase"),
        "status.podIP": ("status", "podIP"),
        "status.podIPs": ("status", "podIPs"),
        "status.nominatedNodeName": ("status", "nominatedNodeName"),
    },
    "events": _EVENT,
    "namespaces": {"status.phase": ("status", "phase")},
    "nodes": {"spec.unschedulable": ("spec", "unschedulable")},
    "services": {"spec.clusterIP": ("spec", "clusterIP"), "spec.type": ("spec", "type")},
    "secrets": {"type": ("type",)},
    "replicationcontrollers": {"status.replicas": ("status", "replicas")},
    "batch/jobs": {"status.successful": ("status", "succeeded")},
    "resource.k8s.io/resourceslices": {"spec.nodeName": ("spec", "nodeName"), "spec.driver": ("spec", "driver")},
    "certificates.k8s.io/certificatesigningrequests": {"spec.signerName": ("spec", "signerName")},
}
_OF_OTHER_WORDS = frozenset((
    "pods", "nodes", "replicationcontrollers", "events", "namespaces", "secrets", "services",
    "certificates.k8s.io/certificatesigningrequests",
))  # fmt: skip
_WITHOUT_NAMESPACE = (
    "nodes", "namespaces", "certificates.k8s.io/certificatesigningrequests", "resource.k8s.io/resourceslices",
)  # fmt: skip
_BOOLEANS = frozenset(("spec.hostNetwork", "spec.unschedulable"))
_NUMBERS = frozenset(("status.replicas", "status.successful"))
# Alternative names of fields: older names, and the names in events.k8s.io/v1.
ALIASES = {
    "pods": {"spec.host": "spec.nodeName"},
    "events": {
        "regarding.kind": "involvedObject.kind",
        "regarding.namespace": "involvedObject.namespace",
        "regarding.name": "involvedObject.name",
        "regarding.uid": "involvedObject.uid",
        "regarding.apiVersion": "involvedObject.apiVersion",
        "regarding.resourceVersion": "involvedObject.resourceVersion",
        "regarding.fieldPath": "involvedObject.fieldPath",
        "reportingController": "reportingComponent",
    },
}


def field_problem(resource: Resource, field: str) -> str:
    """Return upstream's error for a field that selectors do not support, or "" if it is supported."""
    table = resource.table
    if field == "metadata.name" or (field == "metadata.namespace" and table not in _WITHOUT_NAMESPACE):
        return ""
    if resource.custom is not None and field in custom_fields(resource.custom):
        return ""
    known = _FIELDS.get(table, {}).keys() | ALIASES.get(table, {}).keys()
    if table == "events":
        # Each of the two groups of events supports only its own names.
        names = ALIASES["events"].keys()
        known = {"reason", "type", *names} if resource.group else known - names
    if field in known:
        return ""
    if table == "batch/jobs":
        return f'field label "{field}" not supported for Job'
    if table == "resource.k8s.io/resourceslices":
        return f"field label not supported for {resource.api_version}, Kind=ResourceSlice: {field}"
    if table in _OF_OTHER_WORDS or resource.custom is not None:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def custom_fields(version: Document) -> tuple[str, ...]:
    """Return the paths of the selectable fields that a version of a CustomResourceDefinition declares."""
    return tuple(str(each.get("jsonPath") or "").removeprefix(".") for each in parts(version, "selectableFields"))


def custom_value(document: Document, field: str) -> str:
    """Return the value of a declared field as Go prints it, or "" if it is missing."""
    value: object = document
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def canonical_field(table: str, field: str) -> str:
    """Return the name under which the value of a field is stored."""
    return ALIASES.get(table, {}).get(field, field)


def selectable_values(table: str, document: Document) -> dict[str, str]:
    """Return the values of an object's selectable fields by name, without empty strings."""
    fields = _FIELDS.get(table)
    if fields is None:
        return {}
    found: dict[str, str] = {}
    for name, path in fields.items():
        holder = document.get(path[0]) if len(path) > 1 else document
        value = holder.get(path[-1]) if isinstance(holder, dict) else None
        if name in _BOOLEANS:
            found[name] = "true" if value else "false"
        elif name in _NUMBERS:
            found[name] = str(value or 0)
        elif isinstance(value, str) and value:
            found[name] = value
    if table == "events" and "source" not in found and "reportingComponent" in found:
        found["source"] = found["reportingComponent"]
    return found
