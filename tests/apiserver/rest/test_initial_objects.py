"""Objects that the API server creates itself: local APIServices, flow control, and the addresses of Services."""

from __future__ import annotations

from typing import cast

import pytest

from tests.apiserver.client import Client, Document, names

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
SERVICES = "/api/v1/namespaces/default/services"
MANAGED = "kube-aggregator.kubernetes.io/automanaged"


@pytest.fixture
def client() -> Client:
    return Client()


def define(client: Client, *served: str, plural: str = "cars") -> None:
    """Create the definition of a custom resource with the versions v1 and v2, of which some are served."""
    kind = plural.removesuffix("s").capitalize()
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": each, "served": each in served, "storage": each == "v1", "schema": schema} for each in ("v1", "v2")
    ]
    spec = {"group": "toys.example.com", "scope": "Cluster", "names": {"plural": plural, "kind": kind}}
    document = {"metadata": {"name": f"{plural}.toys.example.com"}, "spec": {**spec, "versions": versions}}
    assert client.post(DEFINITIONS, document).status == 201


def custom_api_services(client: Client) -> list[str]:
    return [each for each in names(client.get(API_SERVICES)) if each.endswith(".toys.example.com")]


@pytest.mark.parametrize(
    ("name", "group_priority", "version_priority"),
    [("v1.", 18000, 1), ("v1.apps", 17800, 15), ("v2.autoscaling", 17500, 30), ("v1.resource.k8s.io", 16200, 21)],
)
def test_each_built_in_version_has_a_local_api_service(
    client: Client, name: str, group_priority: int, version_priority: int
) -> None:
    found = client.get(f"{API_SERVICES}/{name}")
    assert found.at("spec.groupPriorityMinimum") == group_priority
    assert found.at("spec.versionPriority") == version_priority
    assert cast("Document", found.at("metadata.labels"))[MANAGED] == "onstart"
    assert found.at("status.conditions.0.reason") == "Local"


def test_a_deleted_api_service_of_a_built_in_group_stays_deleted_and_its_api_is_served(client: Client) -> None:
    assert client.delete(f"{API_SERVICES}/v1.batch").status == 200
    assert client.get(f"{API_SERVICES}/v1.batch").status == 404
    assert client.get("/apis/batch/v1").status == 200


def test_api_services_of_custom_resources_follow_the_served_versions(client: Client) -> None:
    define(client, "v1")
    assert custom_api_services(client) == ["v1.toys.example.com"]
    versions = client.get(f"{DEFINITIONS}/cars.toys.example.com").at("spec.versions")
    both = [{**each, "served": True} for each in cast("list[Document]", versions)]
    client.patch(f"{DEFINITIONS}/cars.toys.example.com", {"spec": {"versions": both}})
    assert custom_api_services(client) == ["v1.toys.example.com", "v2.toys.example.com"]
    client.delete(f"{DEFINITIONS}/cars.toys.example.com")
    assert custom_api_services(client) == []


def test_the_api_service_of_a_custom_resource_is_restored_after_a_deletion_and_a_change(client: Client) -> None:
    define(client, "v1")
    path = f"{API_SERVICES}/v1.toys.example.com"
    before = client.get(path)
    assert before.at("spec.groupPriorityMinimum") == 1000
    client.patch(path, {"spec": {"versionPriority": 7}})
    assert client.get(path).at("spec.versionPriority") == 100
    client.delete(path)
    after = client.get(path)
    assert after.at("spec") == before.at("spec")
    assert after.at("metadata.uid") != before.at("metadata.uid")


@pytest.mark.parametrize(
    ("changes", "priority", "label"),
    [
        pytest.param([{"spec": {"versionPriority": 7}}], 100, "true", id="a managed one is restored"),
        pytest.param(
            [{"metadata": {"labels": {MANAGED: None}}}, {"spec": {"versionPriority": 7}}], 7, None,
            id="one without the label keeps a change",
        ),
        pytest.param(
            [{"metadata": {"labels": {MANAGED: "onstart"}}}, {"spec": {"versionPriority": 7}}], 7, "onstart",
            id="one with another label keeps a change",
        ),
    ],
)  # fmt: skip
def test_only_labelled_api_services_are_restored(
    client: Client, changes: list[Document], priority: int, label: str | None
) -> None:
    define(client, "v1")
    path = f"{API_SERVICES}/v1.toys.example.com"
    for change in changes:
        assert client.patch(path, change).status == 200
    found = client.get(path)
    assert found.at("spec.versionPriority") == priority
    assert cast("Document", found.at("metadata.labels") or {}).get(MANAGED) == label
    client.delete(path)
    assert cast("Document", client.get(path).at("metadata.labels"))[MANAGED] == "true"


def test_a_labelled_api_service_is_corrected_by_a_definition_and_deleted_without_one(client: Client) -> None:
    spec = {"group": "toys.example.com", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 5}
    document = {"metadata": {"name": "v1.toys.example.com", "labels": {MANAGED: "true"}}, "spec": spec}
    client.post(API_SERVICES, document)
    assert custom_api_services(client) == []
    define(client, "v1")
    client.patch(f"{API_SERVICES}/v1.toys.example.com", {"metadata": {"labels": {MANAGED: None}}, "spec": spec})
    client.patch(f"{API_SERVICES}/v1.toys.example.com", {"metadata": {"labels": {MANAGED: "true"}}})
    assert client.get(f"{API_SERVICES}/v1.toys.example.com").at("spec.groupPriorityMinimum") == 1000


def test_an_api_service_stays_as_long_as_a_definition_serves_its_version(client: Client) -> None:
    define(client, "v1")
    define(client, "v1", "v2", plural="trains")
    client.delete(f"{DEFINITIONS}/trains.toys.example.com")
    assert custom_api_services(client) == ["v1.toys.example.com"]


def test_finalizers_delay_the_deletion_of_the_servers_own_objects(client: Client) -> None:
    define(client, "v1")
    created = client.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    paths = [f"{API_SERVICES}/v1.toys.example.com", f"{ADDRESSES}/{created.at('spec.clusterIP')}"]
    for path in paths:
        assert client.patch(path, {"metadata": {"finalizers": ["example.com/wait"]}}).status == 200
    client.delete(f"{DEFINITIONS}/cars.toys.example.com")
    client.delete(f"{SERVICES}/s")
    for path in paths:
        assert client.get(path).at("metadata.deletionTimestamp")
        client.patch(path, {"metadata": {"finalizers": None}})
        assert client.get(path).status == 404


def test_an_api_service_that_a_client_created_is_not_managed(client: Client) -> None:
    spec = {"group": "toys.example.com", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 5}
    client.post(API_SERVICES, {"metadata": {"name": "v1.toys.example.com"}, "spec": spec})
    define(client, "v1")
    client.delete(f"{DEFINITIONS}/cars.toys.example.com")
    assert client.get(f"{API_SERVICES}/v1.toys.example.com").at("spec.versionPriority") == 5


def test_every_flow_schema_refers_to_an_existing_priority_level(client: Client) -> None:
    levels = names(client.get(f"{FLOW_CONTROL}/prioritylevelconfigurations"))
    assert len(levels) == 8
    schemas = cast("list[Document]", client.get(f"{FLOW_CONTROL}/flowschemas").at("items"))
    assert len(schemas) == 11
    for schema in schemas:
        assert cast("dict[str, Document]", schema["spec"])["priorityLevelConfiguration"]["name"] in levels
        conditions = cast("dict[str, list[Document]]", schema["status"])["conditions"]
        assert [(each["type"], each["status"]) for each in conditions] == [("Dangling", "False")]


@pytest.mark.parametrize(
    ("path", "change", "problem"),
    [
        ("flowschemas/catch-all", {"matchingPrecedence": 77}, "spec of 'catch-all' must equal the fixed value"),
        (
            "prioritylevelconfigurations/catch-all",
            {"limited": {"nominalConcurrencyShares": 9}},
            "spec of 'catch-all' must equal the fixed value",
        ),
        ("prioritylevelconfigurations/exempt", {"exempt": {"nominalConcurrencyShares": 9}}, ""),
        ("prioritylevelconfigurations/workload-low", {"limited": {"nominalConcurrencyShares": 9}}, ""),
    ],
)
def test_only_mandatory_flow_control_is_fixed(client: Client, path: str, change: Document, problem: str) -> None:
    answer = client.patch(f"{FLOW_CONTROL}/{path}", {"spec": change})
    if problem:
        assert answer.status == 422
        assert str(answer.at("message")).endswith(problem)
    else:
        assert answer.status == 200


def test_a_service_has_ip_addresses_as_long_as_it_has_cluster_ips(client: Client) -> None:
    created = client.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    address = created.at("spec.clusterIP")
    assert names(client.get(ADDRESSES)) == [address]
    found = client.get(f"{ADDRESSES}/{address}")
    assert found.at("spec.parentRef") == {"resource": "services", "namespace": "default", "name": "s"}
    client.patch(f"{SERVICES}/s", {"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": ""}})
    assert names(client.get(ADDRESSES)) == []
    client.post(SERVICES, {"metadata": {"name": "t"}, "spec": {"ports": [{"port": 80}]}})
    client.post(SERVICES, {"metadata": {"name": "headless"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}})
    assert len(names(client.get(ADDRESSES))) == 1
    client.delete(f"{SERVICES}/t")
    assert names(client.get(ADDRESSES)) == []


def test_an_ip_address_reserves_its_address(client: Client) -> None:
    reference = {"resource": "services", "namespace": "default", "name": "other"}
    client.post(ADDRESSES, {"metadata": {"name": "10.96.9.9"}, "spec": {"parentRef": reference}})
    refused = client.post(
        SERVICES, {"metadata": {"name": "s"}, "spec": {"clusterIP": "10.96.9.9", "ports": [{"port": 80}]}}
    )
    assert refused.status == 422
    assert str(refused.at("message")).endswith("failed to allocate IP 10.96.9.9: provided IP is already allocated")


def test_a_dry_run_creates_no_ip_address(client: Client) -> None:
    client.post(f"{SERVICES}?dryRun=All", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    assert names(client.get(ADDRESSES)) == []


def test_a_missing_ip_address_is_created_at_the_next_start(client: Client) -> None:
    created = client.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    address = created.at("spec.clusterIP")
    client.delete(f"{ADDRESSES}/{address}")
    client.patch(f"{SERVICES}/s", {"metadata": {"labels": {"a": "b"}}})
    assert names(client.get(ADDRESSES)) == []
    assert names(Client(client.store).get(ADDRESSES)) == [address]


def test_the_range_of_cluster_ips_is_ready(client: Client) -> None:
    network = client.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
    assert network.at("spec.cidrs") == ["10.96.0.0/16"]
    assert network.at("status.conditions.0.type") == "Ready"
    assert network.at("status.conditions.0.status") == "True"


def test_admission_policies_are_not_asked_about_the_servers_own_objects(client: Client) -> None:
    admission = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    spec: Document = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "has(object.metadata.labels) && 'team' in object.metadata.labels"}],
    }
    binding = {"policyName": "team", "validationActions": ["Deny"]}
    created = [
        client.post(f"{admission}/validatingadmissionpolicies", {"metadata": {"name": "team"}, "spec": spec}),
        client.post(f"{admission}/validatingadmissionpolicybindings", {"metadata": {"name": "team"}, "spec": binding}),
    ]
    assert [each.status for each in created] == [201, 201]
    service: Document = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    assert client.post(SERVICES, service).status == 422
    service["metadata"] = {"name": "s", "labels": {"team": "a"}}
    assert client.post(SERVICES, service).status == 201
    assert len(names(client.get(ADDRESSES))) == 1


def test_a_restored_api_service_keeps_its_managers(client: Client) -> None:
    define(client, "v1")
    path = f"{API_SERVICES}/v1.toys.example.com"
    revision = client.store.revision
    client.patch(path, {"spec": {"service": {"namespace": "default", "name": "s"}, "insecureSkipTLSVerify": True}})
    found = client.get(path)
    assert found.at("spec.service") is None
    assert found.at("status.conditions.0.reason") == "Local"
    managers = cast("list[Document]", found.at("metadata.managedFields"))
    assert [(each["manager"], each.get("subresource", "")) for each in managers] == [
        ("kube-apiserver", ""),
        ("kube-apiserver", "status"),
    ]
    # The client's write, the condition of the remote API, the restored spec, and the condition of the local API.
    assert client.store.revision - revision == 4


def test_a_server_on_the_store_of_an_earlier_one_serves_its_custom_resources(client: Client) -> None:
    define(client, "v1")
    car = {"apiVersion": "toys.example.com/v1", "kind": "Car", "metadata": {"name": "a"}}
    assert client.post("/apis/toys.example.com/v1/cars", car).status == 201
    restarted = Client(client.store)
    assert names(restarted.get("/apis/toys.example.com/v1/cars")) == ["a"]
    assert custom_api_services(restarted) == ["v1.toys.example.com"]


def test_a_restored_store_serves_the_custom_resources_of_its_definitions(client: Client) -> None:
    empty = client.store.snapshot()
    define(client, "v1")
    defined = client.store.snapshot()
    client.store.restore(empty)
    assert client.get("/apis/toys.example.com/v1/cars").status == 404
    assert "toys.example.com" not in str(client.get("/apis").body)
    client.store.restore(defined)
    assert client.get("/apis/toys.example.com/v1/cars").status == 200
