"""The priority levels and FlowSchemas that every kube-apiserver creates when it starts.

They do not limit requests: they are there to be read, as in a real cluster.
"""

from __future__ import annotations

from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.own_objects import create_missing
from bayplan.apiserver.schema.default_flow_control import LEVELS, SCHEMAS
from bayplan.base.plain_data import Document

_MANAGER = "api-priority-and-fairness-config-producer-v1"
_ANNOTATIONS = {"apf.kubernetes.io/autoupdate-spec": "true"}


def create_flow_control(backend: Backend) -> None:
    """Create the priority levels and FlowSchemas that are missing."""
    for resource_name, specs in (("prioritylevelconfigurations", LEVELS), ("flowschemas", SCHEMAS)):
        for name, spec in specs.items():
            document: Document = {"metadata": {"name": name, "annotations": dict(_ANNOTATIONS)}, "spec": spec}
            create_missing(backend, "flowcontrol.apiserver.k8s.io", resource_name, document, manager=_MANAGER)
