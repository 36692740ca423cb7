"""The status of CustomResourceDefinitions, which kube-apiserver's own controllers write: accepted names, and deletion.

Source: the controllers status and finalizer of apiextensions-apiserver, v1.36.3.
"""

from __future__ import annotations

from bayplan.apiserver.kinds.conditions import with_condition
from bayplan.apiserver.kinds.default_functions import stored_versions
from bayplan.base.plain_data import Document, part, parts, texts

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Finalizer of a deleted definition, which stays until its objects are gone."""


def accepted_status(definition: Document, now: str) -> Document | None:
    """Return the status of a definition whose names are accepted, or None if they have been accepted."""
    status, names = part(definition, "status"), dict(part(definition, "spec", "names"))
    if any(each.get("type") == "Established" for each in parts(status, "conditions")):
        return {**status, "acceptedNames": names} if status.get("acceptedNames") != names else None
    return {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": names,
        "storedVersions": texts(status, "storedVersions") or stored_versions(definition),
    }


def terminating(definition: Document, now: str) -> Document:
    """Return a definition that is marked for deletion, as upstream's endpoint does before its objects are deleted."""
    metadata, status = part(definition, "metadata"), part(definition, "status")
    finalizers = [*(each for each in texts(metadata, "finalizers") if each != CLEANUP), CLEANUP]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    return {
        **definition,
        "metadata": {**metadata, "deletionTimestamp": now, "finalizers": finalizers},
        "status": with_condition(status, _condition("Terminating", "InstanceDeletionPending", message, now)),
    }


def deleting_status(definition: Document, now: str, *, done: bool) -> Document:
    """Return the status of a definition while its objects are deleted, or after that (`done`)."""
    if done:
        condition = _condition("Terminating", "InstanceDeletionCompleted", "removed all instances", now)
        condition["status"] = "False"
    else:
        reason = "InstanceDeletionInProgress"
        condition = _condition("Terminating", reason, "CustomResource deletion is in progress", now)
    return with_condition(part(definition, "status"), condition)


def _condition(name: str, reason: str, message: str, now: str) -> Document:
    return {"type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
