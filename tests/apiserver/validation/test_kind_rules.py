"""Rules of single kinds that upstream checks in an unusual order or not at all (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

import pytest

from tests.apiserver.client import MERGE, STRATEGIC, Answer, Client, Document

_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
_CONTAINER: Document = {"name": "c", "image": "i"}


def _fields(answer: Answer) -> list[str]:
    causes = answer.at("details.causes")
    assert isinstance(causes, list), answer.body
    return [each["field"] for each in causes]


def test_metadata_of_a_budget_are_checked_after_its_spec() -> None:
    bad: Document = {"name": "b", "labels": {"a b": "c"}}

    found = Client().post(_BUDGETS, {"metadata": bad, "spec": {"unhealthyPodEvictionPolicy": "x"}})
    assert _fields(found) == ["spec.unhealthyPodEvictionPolicy"]
    assert _fields(Client().post(_BUDGETS, {"metadata": bad, "spec": {}})) == ["metadata.labels"]
    assert Client().post(_BUDGETS, {"metadata": {"name": "b", "finalizers": ["x"]}}).status == 201


def test_pod_security_labels_are_checked_after_the_rest_of_a_namespace() -> None:
    labels: Document = {"pod-security.kubernetes.io/enforce": "x"}

    found = Client().post(
        "/api/v1/namespaces", {"metadata": {"name": "n", "labels": labels}, "spec": {"finalizers": [""]}}
    )
    assert set(_fields(found)) == {"spec.finalizers"}


def test_the_group_of_a_data_source_is_not_checked_again() -> None:
    client = Client()
    source: Document = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "n"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "dataSource": source}
    assert client.post(_CLAIMS, {"metadata": {"name": "c"}, "spec": spec}).status == 201

    found = client.patch(f"{_CLAIMS}/c", {"spec": {"dataSource": {"apiGroup": "A b"}}}, MERGE)

    assert set(_fields(found)) == {"spec"}


def test_an_ephemeral_volume_needs_a_valid_name_for_its_claim() -> None:
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volume = {"name": "A", "ephemeral": {"volumeClaimTemplate": template}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER], "volumes": [volume]}}

    found = Client().post("/api/v1/namespaces/default/pods", pod)

    assert _fields(found) == ["spec.volumes[0].name", "spec.volumes[0].name"]
    assert 'PVC name "p-A": a lowercase RFC 1123 subdomain' in str(found.at("details.causes.0.message"))


def test_empty_claims_at_pod_level_are_refused() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER], "resources": {"claims": []}}}

    assert _fields(Client().post("/api/v1/namespaces/default/pods", pod)) == ["spec.resources.claims"]


def test_claim_templates_have_no_creation_time() -> None:
    metadata = {"creationTimestamp": "2026-01-02T03:04:05Z"}
    template = {"metadata": metadata, "spec": {"devices": {}}}

    found = Client().post(
        "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
        {"metadata": {"name": "t"}, "spec": template},
    )

    assert _fields(found) == ["spec.metadata.creationTimestamp"]


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        pytest.param([], "undeclared reference to 'variables'", id="no variables"),
        pytest.param([{"name": "b", "expression": "1"}], "undefined field 'a'", id="another variable"),
        pytest.param([{"name": "a", "expression": ""}], "undefined field 'a'", id="no expression"),
    ],
)
def test_a_variable_must_be_declared(variables: list[Document], want: str) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "variables": variables,
        "validations": [{"expression": "variables.a"}],
    }

    found = Client().post(_POLICIES, {"metadata": {"name": "p"}, "spec": spec})

    assert want in str(found.at("message"))


def test_a_mutating_policy_always_has_variables() -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    expression = "Object{metadata: Object.metadata{labels: {'a': string(variables.a)}}}"
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    assert "undefined field 'a'" in str(Client().post(path, {"metadata": {"name": "p"}, "spec": spec}).at("message"))


def test_bindings_of_mutating_policies_match_no_deletions() -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}]
    spec = {"policyName": "p", "matchResources": {"resourceRules": rules}}

    found = Client().post(
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
        {"metadata": {"name": "b"}, "spec": spec},
    )

    assert _fields(found) == ["spec.matchResources.resourceRules.operations"]


def test_generated_names_of_replication_controllers_are_checked_once() -> None:
    found = Client().post(_CONTROLLERS, {"metadata": {"generateName": "A-"}, "spec": {}})

    assert "metadata.generateName" not in _fields(found)


def test_an_update_of_a_replication_controller_warns_about_the_old_template() -> None:
    client = Client()
    old: Document = {"containers": [_CONTAINER], "nodeSelector": {"beta.kubernetes.io/os": "x"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": old}
    client.post(_CONTROLLERS, {"metadata": {"name": "r"}, "spec": {"selector": {"a": "b"}, "template": template}})

    changes = {"spec": {"template": {"spec": {"nodeSelector": None}}}}
    assert [name for name, _ in client.patch(f"{_CONTROLLERS}/r", changes).headers] == ["warning"]
    assert (
        client.patch(
            f"{_CONTROLLERS}/r", {"spec": {"template": {"spec": {"nodeSelector": old["nodeSelector"]}}}}
        ).headers
        == []
    )


def test_labels_of_a_job_with_an_invalid_name_are_not_generated() -> None:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [_CONTAINER]}}}

    found = Client().post("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "a:b"}, "spec": spec})

    assert "metadata.labels" not in _fields(found)


def test_empty_policy_types_are_no_change() -> None:
    client = Client()
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    client.post(path, {"metadata": {"name": "n"}, "spec": {"podSelector": {}}})

    assert client.patch(f"{path}/n", {"spec": {"policyTypes": []}}).at("metadata.generation") == 1


def test_all_items_to_delete_have_the_type_of_the_list() -> None:
    client = Client()
    client.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER]}})

    changes = {"spec": {"$deleteFromPrimitiveList/containers": ["c"]}}
    found = client.patch("/api/v1/namespaces/default/pods/p", changes, STRATEGIC)

    assert found.status == 500
    assert str(found.at("message")).startswith("list element types are not identical: [[map[")


def test_addresses_of_a_load_balancer_are_shown_once_and_sorted() -> None:
    client = Client()
    path = "/api/v1/namespaces/default/services"
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "externalIPs": ["9.9.9.9"]}
    client.post(path, {"metadata": {"name": "s"}, "spec": spec})
    addresses = [{"ip": "2.2.2.2"}, {"hostname": "h"}, {"ip": "1.1.1.1"}, {"ip": "2.2.2.2"}]
    client.patch(f"{path}/s/status", {"status": {"loadBalancer": {"ingress": addresses}}})

    table = client.get(f"{path}/s", accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    assert table.at("rows.0.cells.3") == "1.1.1.1,2.2.2.2,h,9.9.9.9"


def test_restart_rules_of_init_containers_without_a_policy_are_not_checked() -> None:
    container = {"name": "i", "image": "i", "restartPolicyRules": [{}]}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [_CONTAINER], "initContainers": [container]}}

    found = Client().post("/api/v1/namespaces/default/pods", pod)

    assert _fields(found) == ["spec.initContainers[0].restartPolicy"]


def test_a_service_that_its_status_created_gets_no_address_later() -> None:
    client = Client()
    place = "/api/v1/namespaces/default/services/s"
    spec: Document = {"ports": [{"port": 80}]}
    assert client.put(f"{place}/status", {"metadata": {"name": "s"}, "spec": spec}).status == 201
    answer = client.patch(place, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert answer.at("spec.ipFamilyPolicy") == "SingleStack"
    assert answer.at("spec.clusterIP") is None
    assert answer.at("spec.clusterIPs") is None


@pytest.mark.parametrize("resource", ["hugepages-2Mi", "requests.hugepages-1Gi", "requests.storage"])
def test_a_scope_of_pods_fits_no_quota_of_huge_pages_or_storage(resource: str) -> None:
    quota: Document = {"metadata": {"name": "q"}, "spec": {"hard": {resource: "1"}, "scopes": ["NotTerminating"]}}
    answer = Client().post("/api/v1/namespaces/default/resourcequotas", quota)
    assert _fields(answer) == ["spec.scopes"]


@pytest.mark.parametrize("resource", ["configmaps", "secrets"])
def test_errors_about_immutable_fields_precede_the_last_about_metadata(resource: str) -> None:
    client, path = Client(), f"/api/v1/namespaces/default/{resource}"
    client.post(path, {"metadata": {"name": "o"}, "data": {"a": "YQ=="}, "immutable": True})

    found = client.put(f"{path}/o", {"metadata": {"name": "o", "labels": {"A B": ""}}, "data": {"b c": "YQ=="}})

    assert _fields(found) == [*["metadata.labels"] * 3, "immutable", "data", "metadata.labels", "data[b c]"]
