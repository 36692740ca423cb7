"""APIServices: the condition Available, and the responses to requests for their groups."""

from __future__ import annotations

import pytest

from bayplan.apiserver.rest import api_service_conditions, backend
from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.store.item import Item
from bayplan.base.plain_data import part
from tests.apiserver.client import Client, Document

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
NAME = "v1.metrics.example.com"


def api_service(**service: object) -> Document:
    spec: Document = {"group": "metrics.example.com", "version": "v1"}
    spec |= {"groupPriorityMinimum": 100, "versionPriority": 100}
    if service:
        spec |= {"service": {"namespace": "default", "name": "s", **service}, "insecureSkipTLSVerify": True}
    return {"metadata": {"name": NAME}, "spec": spec}


SERVICE: Document = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 443}]}}


def endpoint_slice(name: str, port: str, *addresses: str, service: str = "s") -> Document:
    metadata: Document = {"name": name, "labels": {"kubernetes.io/service-name": service}}
    endpoints = [{"addresses": [each]} for each in addresses]
    ports = [{"name": port, "port": 443}]
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}


@pytest.mark.parametrize(
    ("objects", "port", "want"),
    [
        pytest.param([], 443, ("ServiceNotFound", 'service/s in "default" is not present'), id="no service"),
        pytest.param(
            [SERVICE], 8443, ("ServicePortError", 'service/s in "default" is not listening on port 8443'), id="other port"
        ),
        pytest.param(
            [SERVICE], 443, ("EndpointsNotFound", 'cannot find endpointslices for service/s in "default"'),
            id="no endpoints",
        ),
        pytest.param(
            [SERVICE, endpoint_slice("a", "")], 443,
            ("MissingEndpoints", 'endpointslices for service/s in "default" have no addresses with port name ""'),
            id="endpoints without addresses",
        ),
        pytest.param(
            [SERVICE, endpoint_slice("a", "other", "10.1.1.1")], 443,
            ("MissingEndpoints", 'endpointslices for service/s in "default" have no addresses with port name ""'),
            id="endpoints with another port",
        ),
    ],
)  # fmt: skip
def test_the_condition_has_the_reason_why_an_api_is_not_available(
    objects: list[Document], port: int, want: tuple[str, str]
) -> None:
    client = Client()
    for each in objects:
        path = SLICES if "endpoints" in each else "/api/v1/namespaces/default/services"
        assert client.post(path, each).status == 201
    client.post(SERVICES, api_service(port=port))

    found = client.get(f"{SERVICES}/{NAME}")
    assert found.at("status.conditions.0.status") == "False"
    assert (found.at("status.conditions.0.reason"), found.at("status.conditions.0.message")) == want
    managers = [found.at(f"metadata.managedFields.{index}.manager") for index in range(2)]
    assert sorted(map(str, managers)) == ["kube-apiserver", "test"]


def test_the_condition_follows_services_and_endpoints() -> None:
    client = Client()
    client.post(SERVICES, api_service(port=443))
    reasons = []
    for path, body in (
        ("/api/v1/namespaces/default/services", SERVICE),
        (SLICES, endpoint_slice("a", "", "10.1.1.1")),
    ):
        client.post(path, body)
        reasons.append(client.get(f"{SERVICES}/{NAME}").at("status.conditions.0.reason"))
    client.delete(f"{SLICES}/a")
    reasons.append(client.get(f"{SERVICES}/{NAME}").at("status.conditions.0.reason"))
    assert reasons == ["EndpointsNotFound", "FailedDiscoveryCheck", "EndpointsNotFound"]


def test_the_condition_follows_a_slice_that_changes_to_another_service() -> None:
    client = Client()
    client.post("/api/v1/namespaces/default/services", SERVICE)
    client.post(SERVICES, api_service(port=443))
    client.post(SLICES, endpoint_slice("a", "", "10.1.1.1"))
    reasons = []
    for service in ("other", "s"):
        client.patch(f"{SLICES}/a", {"metadata": {"labels": {"kubernetes.io/service-name": service}}})
        reasons.append(client.get(f"{SERVICES}/{NAME}").at("status.conditions.0.reason"))
    assert reasons == ["EndpointsNotFound", "FailedDiscoveryCheck"]


@pytest.mark.parametrize(
    ("path", "body", "want"),
    [
        pytest.param(SLICES, endpoint_slice("new", "", "10.1.1.1", service="t"), [], id="a slice of another service"),
        pytest.param(
            "/api/v1/namespaces/default/services", {**SERVICE, "metadata": {"name": "t"}}, [], id="another service"
        ),
        pytest.param(
            SLICES.replace("default", "kube-system"), endpoint_slice("new", "", "10.1.1.1"), [],
            id="a slice in another namespace",
        ),
        pytest.param(
            SLICES, endpoint_slice("new", "", "10.1.1.1"), [NAME, "s", "new", "own"],
            id="a slice of the service decodes no slices of other services",
        ),
    ],
)  # fmt: skip
def test_a_write_decodes_only_api_services_and_slices_of_its_service(
    monkeypatch: pytest.MonkeyPatch, path: str, body: Document, want: list[str]
) -> None:
    client = Client()
    client.post("/api/v1/namespaces/default/services", SERVICE)
    client.post(SERVICES, api_service(port=443))
    local = api_service()
    part(local, "metadata")["name"], part(local, "spec")["group"] = "v1.local.example.com", "local.example.com"
    assert client.post(SERVICES, local).status == 201
    for each in (endpoint_slice("own", "", "10.1.1.1"), endpoint_slice("unrelated", "", "10.1.1.1", service="u")):
        assert client.post(SLICES, each).status == 201
    client.post(SLICES, endpoint_slice("first", "", "10.1.1.1", service="u"))

    decoded: list[str] = []

    def counting(item: Item) -> Document:
        decoded.append(item.name)
        return decode_item(item)

    for module in (backend, api_service_conditions):
        monkeypatch.setattr(module, "decode_item", counting)
    assert client.post(path, body).status == 201
    assert [each for each in decoded if each not in ("default", "kube-system")] == want


def test_an_api_without_a_service_is_available_from_the_start() -> None:
    answer = Client().post(SERVICES, api_service())
    assert (answer.at("status.conditions.0.status"), answer.at("status.conditions.0.reason")) == ("True", "Local")


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/v1", (503, "service unavailable\n"), id="its resources"),
        pytest.param("/v1/nodes/a", (503, "service unavailable\n"), id="an object"),
        pytest.param("/v2", (404, "404 page not found\n"), id="another version"),
    ],
)
def test_a_remote_api_is_unavailable_and_has_no_other_versions(path: str, want: tuple[int, str]) -> None:
    client = Client()
    client.post(SERVICES, api_service(port=443))
    answer = client.get(f"/apis/metrics.example.com{path}")
    assert (answer.status, answer.body) == want


def test_a_remote_group_has_a_discovery_document_until_it_is_deleted() -> None:
    client = Client()
    client.post(SERVICES, api_service(port=443))
    version = {"groupVersion": "metrics.example.com/v1", "version": "v1"}
    assert client.get("/apis/metrics.example.com").at("versions") == [version]
    client.delete(f"{SERVICES}/{NAME}")
    assert client.get("/apis/metrics.example.com").status == 404


def test_the_table_shows_service_and_reason() -> None:
    client = Client()
    client.post(SERVICES, api_service(port=443))
    table = client.call("GET", f"{SERVICES}/{NAME}", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table.at("rows.0.cells") == [NAME, "default/s", "False (ServiceNotFound)", "0s"]
