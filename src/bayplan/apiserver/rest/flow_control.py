"""The priority levels and FlowSchemas that every kube-apiserver creates when it starts, and the condition Dangling.

They do not limit requests: they are there to be read, as in a real cluster.
"""

from __future__ import annotations

from bayplan.apiserver.kinds import flow_kinds
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.rest.own_objects import create_missing
from bayplan.apiserver.schema.default_flow_control import LEVELS, SCHEMAS
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.base.plain_data import Document

_MANAGER = "api-priority-and-fairness-config-producer-v1"
_ANNOTATIONS = {"apf.kubernetes.io/autoupdate-spec": "true"}


def create_flow_control(backend: Backend) -> None:
    """Create the priority levels and FlowSchemas that are missing."""
    for resource_name, specs in (("prioritylevelconfigurations", LEVELS), ("flowschemas", SCHEMAS)):
        for name, spec in specs.items():
            document: Document = {"metadata": {"name": name, "annotations": dict(_ANNOTATIONS)}, "spec": spec}
            create_missing(backend, "flowcontrol.apiserver.k8s.io", resource_name, document, manager=_MANAGER)


def refresh_flow_schemas(backend: Backend, resource: Resource, write: Write) -> None:
    """Set the condition Dangling of all FlowSchemas after a write of a priority level."""
    for item in list(backend.store.between(flow_kinds.SCHEMAS)):
        _refresh(backend, item)


def refresh_flow_schema(backend: Backend, resource: Resource, write: Write) -> None:
    """Set the condition Dangling of a written FlowSchema, which reports whether its priority level is missing."""
    if write.type != DELETED:
        _refresh(backend, write.new)


def _refresh(backend: Backend, item: Item) -> None:
    schema = decode_item(item)
    condition = flow_kinds.changed_condition(backend, schema)
    if condition is not None:
        resource = backend.registry.of_table(flow_kinds.SCHEMAS)
        backend.apply_conditions(resource, schema, [condition], flow_kinds.CONDITION_MANAGER)
