"""The Service `default/kubernetes` with its endpoints, which a server publishes."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.rest.api_endpoints import VIRTUAL_ADDRESS, advertised_address, publish_api_server
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.store.store import Store
from tests.apiserver.client import Client

SERVICE = "/api/v1/namespaces/default/services/kubernetes"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


def shown(client: Client, path: str) -> Any:
    """Return an object as a client sees it."""
    return client.get(path).document


class Published(Client):
    """A cluster that a server on a port serves."""

    def __init__(self, port: int, address: str = VIRTUAL_ADDRESS, store: Store | None = None) -> None:
        super().__init__(store)
        self.backend.advertised = (address, port)
        bootstrap(self.backend)

    def endpoints(self) -> tuple[object, ...]:
        """Return address and port as Endpoints and as EndpointSlice."""
        subset = shown(self, ENDPOINTS)["subsets"][0]
        part = shown(self, SLICE)
        return (
            (subset["addresses"][0]["ip"], subset["ports"][0]["port"]),
            (part["endpoints"][0]["addresses"][0], part["ports"][0]["port"]),
        )


@pytest.mark.parametrize(
    ("listen", "want"),
    [
        pytest.param("127.0.0.1", VIRTUAL_ADDRESS, id="endpoints have no loopback addresses"),
        pytest.param("localhost", VIRTUAL_ADDRESS, id="endpoints have no host names"),
        pytest.param("::1", VIRTUAL_ADDRESS, id="endpoints have no IPv6 loopback addresses"),
        pytest.param("0.0.0.0", VIRTUAL_ADDRESS, id="the wildcard address is not advertised"),
        pytest.param("192.168.1.5", "192.168.1.5", id="a routable address is advertised"),
    ],
)
def test_only_a_routable_address_is_advertised(listen: str, want: str) -> None:
    assert advertised_address(listen) == want


def test_the_kubernetes_service_has_a_cluster_ip_and_endpoints() -> None:
    cluster = Published(6443)
    service = shown(cluster, SERVICE)
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    assert service["spec"]["clusterIPs"] == ["10.96.0.1"]
    assert service["spec"]["ports"] == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert cluster.endpoints() == ((VIRTUAL_ADDRESS, 6443), (VIRTUAL_ADDRESS, 6443))
    labels = shown(cluster, SLICE)["metadata"]["labels"]
    assert labels["kubernetes.io/service-name"] == "kubernetes"


def test_a_changed_port_updates_the_endpoints_unless_the_address_is_foreign() -> None:
    cluster = Published(6443)
    assert Published(7000, store=cluster.store).endpoints() == ((VIRTUAL_ADDRESS, 7000), (VIRTUAL_ADDRESS, 7000))
    assert Published(8000, "192.168.1.5", store=cluster.store).endpoints()[0] == (VIRTUAL_ADDRESS, 7000)


def test_publishing_recreates_deleted_objects_and_does_not_rewrite_existing_ones() -> None:
    cluster = Published(6443)
    revision = cluster.store.revision
    publish_api_server(cluster.backend)
    assert cluster.store.revision == revision
    for path in (SERVICE, ENDPOINTS, SLICE):
        cluster.delete(path)
    publish_api_server(cluster.backend)
    assert cluster.endpoints() == ((VIRTUAL_ADDRESS, 6443), (VIRTUAL_ADDRESS, 6443))


def test_the_kubernetes_service_does_not_exist_without_a_server() -> None:
    assert Client().get(SERVICE).status == 404
