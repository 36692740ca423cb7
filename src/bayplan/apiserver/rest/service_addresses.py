"""The objects that describe the addresses of Services: the ServiceCIDR of the cluster, and an IPAddress per cluster IP.

Source: https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/ and kube-apiserver v1.36.3.
"""

from __future__ import annotations

from ipaddress import ip_address

from bayplan.apiserver.kinds.service_allocation import SERVICE_NETWORK
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest.backend import Backend, decode_item
from bayplan.apiserver.rest.own_objects import create_missing, delete_own
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.base.plain_data import Document, part, texts

_GROUP = "networking.k8s.io"
_ADDRESSES, _NETWORKS = f"{_GROUP}/ipaddresses", f"{_GROUP}/servicecidrs"
_SERVICES = "services"
_CONTROLLER = "kubernetes-service-cidr-controller"


def create_service_network(backend: Backend) -> None:
    """Create the ServiceCIDR `kubernetes` if it is missing, with its condition Ready."""
    if backend.find(_NETWORKS, "", "kubernetes") is not None:
        return
    document: Document = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [str(SERVICE_NETWORK)]}}
    create_missing(backend, _GROUP, "servicecidrs", document)
    created = backend.find(_NETWORKS, "", "kubernetes")
    assert created is not None
    condition: Document = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": backend.now(),
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    backend.apply_conditions(backend.registry.of_table(_NETWORKS), created, [condition], _CONTROLLER)


def create_ip_addresses(backend: Backend) -> None:
    """Create the missing IPAddresses of the stored Services."""
    for item in list(backend.store.between(_SERVICES)):
        for address in _cluster_ips(item):
            _create(backend, item, address)


def sync_ip_addresses(backend: Backend, resource: Resource, write: Write) -> None:
    """Create the IPAddresses for the new cluster IPs of a Service, and delete those of its former cluster IPs."""
    before = _cluster_ips(write.old)
    after = [] if write.type == DELETED else _cluster_ips(write.new)
    for address in before:
        if address not in after:
            delete_own(backend, _ADDRESSES, address)
    for address in after:
        if address not in before:
            _create(backend, write.new, address)


def _create(backend: Backend, service: Item, address: str) -> None:
    reference: Document = {"resource": _SERVICES, "namespace": service.namespace, "name": service.name}
    family = "IPv6" if ":" in address else "IPv4"
    labels = {"ipaddress.kubernetes.io/ip-family": family, "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
    document: Document = {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": reference}}
    create_missing(backend, _GROUP, "ipaddresses", document)


def _cluster_ips(item: Item | None) -> list[str]:
    """Return the cluster IPs of a Service that have an IPAddress."""
    if item is None:
        return []
    spec = part(decode_item(item), "spec")
    return [each for each in texts(spec, "clusterIPs") if _is_address(each)]


def _is_address(text: str) -> bool:
    try:
        return str(ip_address(text)) == text
    except ValueError:
        return False
