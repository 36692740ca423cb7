"""A request in the form that policies and webhooks receive, and a namespace in the form that policies receive."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.apiserver.admission.attributes import Attributes, Match
from bayplan.apiserver.model.expressions import AUTHORIZATION, cel_value
from bayplan.base.plain_data import Document, part

_NAMESPACE_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)


def admission_request(attributes: Attributes, match: Match) -> Document:
    """Return the AdmissionRequest of a request, without uid, objects, dryRun and options."""
    asked, got = attributes.resource, match.resource
    request: Document = {
        "kind": match.kind._asdict(),
        "resource": {"group": got.group, "version": got.version, "resource": got.name},
        "subResource": attributes.subresource,
        "requestKind": attributes.kind._asdict(),
        "requestResource": {"group": asked.group, "version": asked.version, "resource": asked.name},
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": attributes.user.document(),
    }
    for name in ("subResource", "requestSubResource", "name", "namespace"):
        if not request[name]:
            del request[name]
    return request


def admission_values(attributes: Attributes, match: Match, *, with_namespace: bool = True) -> Mapping[str, object]:
    """Return the values of the variables that policy expressions can use, except `params` and `variables`.

    Args:
        attributes: the request.
        match: the resource and kind in which the policy receives the request.
        with_namespace: whether to look up the namespace; otherwise `namespaceObject` is null.
    """
    new, old = attributes.versions(match)
    request = admission_request(attributes, match) | {"dryRun": attributes.dry_run, "options": attributes.options}
    namespace: object = None
    is_namespace = (attributes.kind.group, attributes.kind.kind) == ("", "Namespace")
    if with_namespace and attributes.namespace and not is_namespace:
        found = attributes.lister.find("namespaces", "", attributes.namespace)
        namespace = None if found is None else namespace_value(found)
    return {
        "object": cel_value(new),
        "oldObject": cel_value(old),
        "request": cel_value(request),
        "namespaceObject": cel_value(namespace),
        **AUTHORIZATION,
    }


def namespace_value(namespace: Document) -> Document:
    """Return the value of the variable `namespaceObject` for a namespace."""
    metadata = part(namespace, "metadata")
    shown = {name: metadata[name] for name in _NAMESPACE_METADATA if name in metadata}
    return {"metadata": shown, "spec": part(namespace, "spec"), "status": part(namespace, "status")}
