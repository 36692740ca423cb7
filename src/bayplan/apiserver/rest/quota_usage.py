"""Admission by resource quotas: add the usage of a write to the status of its namespace's quotas, or reject the write.

The quota controller (`bayplan.apiserver.bridge.quota_controller`) fills in the status, and subtracts the usage of
deleted objects.
"""

from __future__ import annotations

from bayplan.apiserver.fields import managed
from bayplan.apiserver.kinds.strategy import Context
from bayplan.apiserver.model.errors import forbidden
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.validation.formats import amount_of
from bayplan.apiserver.validation.pod_resources import pod_amounts, quota_of
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.resource_quotas import Usage, check_quotas, claim_usage, object_usage, pod_usage, service_usage

QUOTAS = "resourcequotas"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_MANAGER = "kube-apiserver"
_BY_TABLE = ("pods", "services", "persistentvolumeclaims")


def charge(backend: Backend, context: Context, document: Document, before: Document | None) -> None:
    """Add the usage of a write to the quotas of its namespace. A dry run is only checked.

    Args:
        backend: the backend of the API.
        context: the context of the write.
        document: the valid object to store.
        before: the current object, None for a create.

    Raises:
        ApiError: the write exceeds a quota.
    """
    resource = context.resource
    if not resource.namespaced or context.imported or not backend.store.table(QUOTAS):
        return
    if before is not None and not _counts_update(context, document, before):
        return
    quotas = [each for each in backend.all(QUOTAS) if part(each, "metadata").get("namespace") == context.namespace]
    if not quotas:
        return
    usage = usage_of(resource, document)
    earlier = usage_of(resource, before) if before is not None else None
    checked = check_quotas([quota_of(each) for each in quotas], usage, earlier)
    if checked.problem:
        name = str(part(document, "metadata").get("name") or "")
        raise forbidden(resource.name, resource.group, name, checked.problem)
    if not context.dry_run:
        for quota in quotas:
            used = checked.used.get(str(part(quota, "metadata").get("name")))
            if used is not None:
                store_used(backend, quota, {name: str(amount) for name, amount in used.items()})


def _counts_update(context: Context, document: Document, before: Document) -> bool:
    table = context.resource.table
    if table == "pods":
        deadlines = [part(each, "spec").get("activeDeadlineSeconds") is not None for each in (document, before)]
        return context.subresource == "resize" or (not context.subresource and deadlines[0] != deadlines[1])
    return table in _BY_TABLE and not context.subresource


def usage_of(resource: Resource, document: Document) -> Usage:
    """Return the quota usage of an object."""
    spec = part(document, "spec")
    if resource.table == "pods":
        return pod_usage(pod_amounts(document))
    if resource.table == "services":
        ports = parts(spec, "ports")
        fixed = sum(1 for port in ports if port.get("nodePort"))
        allocates = spec.get("allocateLoadBalancerNodePorts") is not False
        return service_usage(str(spec.get("type") or ""), len(ports), fixed, allocates_ports=allocates)
    if resource.table == "persistentvolumeclaims":
        asked = part(spec, "resources", "requests").get("storage")
        annotated = part(document, "metadata", "annotations").get(_BETA_CLASS)
        storage_class = str(annotated or spec.get("storageClassName") or "")
        storage = amount_of(str(asked)) if asked is not None else None
        return claim_usage(storage, storage_class, str(spec.get("volumeAttributesClassName") or ""))
    return object_usage(resource.group, resource.name)


def store_used(backend: Backend, quota: Document, used: dict[str, str]) -> None:
    """Store a quota with these `used` amounts in its status, keyed by resource."""
    resource = backend.registry.of_table(QUOTAS)
    metadata = dict(part(quota, "metadata"))
    new = {**quota, "metadata": metadata, "status": {**part(quota, "status"), "used": dict(sorted(used.items()))}}
    strategy = backend.strategy(resource)
    owner = managed.WriteContext(
        _MANAGER,
        resource.api_version,
        resource.fields,
        backend.now(),
        "status",
        strategy.reset_fields(resource, "status"),
    )
    entries = metadata.pop("managedFields", None)
    managers = managed.after_update(owner, quota, new, managed.decode(entries))
    encoded = managed.encode(managers)
    if encoded:
        metadata["managedFields"] = encoded
    backend.put(resource, new)
