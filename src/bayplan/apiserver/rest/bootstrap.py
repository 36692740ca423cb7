"""The initial objects of a cluster, as kube-apiserver creates them when it starts.

These are namespaces, the system priority classes, local APIServices, flow control, the ServiceCIDR, and the Service
`default/kubernetes`.
"""

from __future__ import annotations

from bayplan.apiserver.rest.api_endpoints import publish_api_server
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.definitions import serve_stored_definitions
from bayplan.apiserver.rest.flow_control import create_flow_control
from bayplan.apiserver.rest.local_api_services import create_local_api_services
from bayplan.apiserver.rest.own_objects import create_missing
from bayplan.apiserver.rest.reactions import REACTIONS
from bayplan.apiserver.rest.service_addresses import create_ip_addresses, create_service_network
from bayplan.base.plain_data import Document

NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
_CLASSES = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def bootstrap(backend: Backend) -> None:
    """Store the initial objects that are missing, and start the reactions of kube-apiserver's controllers to writes."""
    if not backend.reactions:
        backend.reactions = REACTIONS
        backend.store.on_restore(lambda: serve_stored_definitions(backend))
        serve_stored_definitions(backend)
    create_local_api_services(backend)
    for name in NAMESPACES:
        create_missing(backend, "", "namespaces", {"metadata": {"name": name}})
    for name, value, description in _CLASSES:
        document: Document = {"metadata": {"name": name}, "value": value, "description": description}
        create_missing(backend, "scheduling.k8s.io", "priorityclasses", document)
    create_flow_control(backend)
    create_service_network(backend)
    create_ip_addresses(backend)
    publish_api_server(backend)
