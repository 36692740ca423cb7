"""Conditions in the status of objects whose status kube-apiserver itself writes."""

from __future__ import annotations

from bayplan.base.plain_data import Document, part, parts


def has_condition(document: Document, name: str, status: str) -> bool:
    """Return whether an object has a condition of this type and status."""
    conditions = parts(part(document, "status"), "conditions")
    return any(each.get("type") == name and each.get("status") == status for each in conditions)


def with_condition(status: Document, condition: Document) -> Document:
    """Return a status with a condition, which replaces a condition of the same type or is appended.

    A condition whose status does not change keeps the time of its last transition.
    """
    conditions = parts(status, "conditions")
    at = next((i for i, each in enumerate(conditions) if each.get("type") == condition["type"]), len(conditions))
    if at < len(conditions) and conditions[at].get("status") == condition["status"]:
        condition = {**condition, "lastTransitionTime": conditions[at].get("lastTransitionTime")}
    return {**status, "conditions": [*conditions[:at], condition, *conditions[at + 1 :]]}
