"""The Service `default/kubernetes` with its Endpoints and EndpointSlice, through which pods find the API server.

The server stores them when it starts, and again when one of them is deleted, as kube-apiserver does.
Source: pkg/controlplane v1.36.3.
"""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address

from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.own_objects import create_missing
from bayplan.base.plain_data import Document, part, parts

API_NAMESPACE, API_SERVICE = "default", "kubernetes"
CLUSTER_IP = "10.96.0.1"

VIRTUAL_ADDRESS = "172.16.0.1"
"""The address to publish if the server listens on a loopback or wildcard address, because endpoints must not have
these. It is the first address of the virtual nodes' range (`bayplan.apiserver.bridge.network`); nothing listens on it.
"""


def advertised_address(listen: str) -> str:
    """Return the IPv4 address to publish for the address that the server listens on.

    `VIRTUAL_ADDRESS` replaces addresses that endpoints must not have: host names, IPv6, loopback and wildcard
    addresses.
    """
    try:
        address = ip_address(listen)
    except ValueError:
        return VIRTUAL_ADDRESS
    usable = isinstance(address, IPv4Address) and not address.is_loopback and not address.is_unspecified
    return str(address) if usable else VIRTUAL_ADDRESS


def publish_api_server(backend: Backend) -> None:
    """Store the Service and its endpoints if they are missing, and update the port of the endpoints.

    The port changes only if the endpoints have the server's address. Does nothing for a backend without a server
    (`Backend.advertised` is None).
    """
    if backend.advertised is None:
        return
    address, port = backend.advertised
    service_port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    spec: Document = {
        "type": "ClusterIP",
        "clusterIP": CLUSTER_IP,
        "ports": [service_port],
        "sessionAffinity": "None",
        "ipFamilyPolicy": "SingleStack",
    }
    _store(backend, "", "services", {"metadata": {"name": API_SERVICE, "labels": labels}, "spec": spec})
    port_document: Document = {"name": "https", "port": port, "protocol": "TCP"}
    subsets = [{"addresses": [{"ip": address}], "ports": [port_document]}]
    skipped = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    endpoints: Document = {"metadata": {"name": API_SERVICE, "labels": skipped}, "subsets": subsets}
    _store(backend, "", "endpoints", endpoints, address)
    of_service = {"kubernetes.io/service-name": API_SERVICE}
    ready = {"addresses": [address], "conditions": {"ready": True}}
    _store(
        backend,
        "discovery.k8s.io",
        "endpointslices",
        {
            "metadata": {"name": API_SERVICE, "labels": of_service},
            "addressType": "IPv4",
            "endpoints": [ready],
            "ports": [port_document],
        },
        address,
    )


def _store(backend: Backend, group: str, resource_name: str, document: Document, address: str = "") -> None:
    """Store an object if it does not exist.

    If it exists with the same single address but other ports, replace everything except its metadata.
    """
    resource = backend.registry.find(group, "v1", resource_name)
    assert resource is not None
    metadata = part(document, "metadata")
    metadata["namespace"] = API_NAMESPACE
    found = backend.find(resource.table, API_NAMESPACE, API_SERVICE)
    if found is not None:
        if _addresses(found) == [address] and _ports(found) != _ports(document):
            changed = {name: value for name, value in document.items() if name != "metadata"}
            backend.put(resource, {**found, **changed})
        return
    create_missing(backend, group, resource_name, document)


def _addresses(document: Document) -> list[object]:
    of_slices = [address for each in parts(document, "endpoints") for address in _list(each, "addresses")]
    return of_slices + [
        address.get("ip") for each in parts(document, "subsets") for address in parts(each, "addresses")
    ]


def _ports(document: Document) -> list[object]:
    subsets = parts(document, "subsets")
    return [each.get("port") for holder in (document, *subsets) for each in parts(holder, "ports")]


def _list(document: Document, name: str) -> list[object]:
    value = document.get(name)
    return value if isinstance(value, list) else []
