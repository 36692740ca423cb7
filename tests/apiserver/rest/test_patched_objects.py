"""Results of patches in corner cases that depend on Go's types, as answered by kube-apiserver v1.36.3."""

from __future__ import annotations

import pytest

from bayplan.apiserver.codec.bodies import Parsed, parse_yaml
from bayplan.apiserver.rest import decoding
from tests.apiserver.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client, Document

MAP = "/api/v1/namespaces/default/configmaps/a"
WEB = "/apis/apps/v1/namespaces/default/deployments/web"
CONTAINER: Document = {"name": "c", "image": "i"}


def deployment(**spec: object) -> Document:
    template: Document = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER], **spec}}
    whole: Document = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": whole}


@pytest.fixture
def client() -> Client:
    found = Client()
    body: Document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"x": "y"}}
    assert found.post(MAP.rpartition("/")[0], body).status == 201
    return found


@pytest.mark.parametrize(
    ("media_type", "patch"),
    [
        pytest.param(MERGE, {"apiVersion": None}, id="removed"),
        pytest.param(JSON_PATCH, [{"op": "replace", "path": "/apiVersion", "value": ""}], id="emptied"),
    ],
)
def test_removing_the_api_version_by_patch_is_refused_with_unknown_field_warnings(
    client: Client, media_type: str, patch: object
) -> None:
    answer = client.patch(MAP, patch, media_type)
    assert answer.status == 400
    assert answer.at("message") == "the name of the object (a based on URL) was undeterminable: name must be provided"
    warnings = [text for name, text in answer.headers if name.lower() == "warning"]
    assert warnings == ['299 - "unknown field \\"data\\""', '299 - "unknown field \\"metadata\\""']


@pytest.mark.parametrize("media_type", [MERGE, STRATEGIC])
def test_an_empty_list_removes_all_managed_fields(client: Client, media_type: str) -> None:
    answer = client.patch(MAP, {"metadata": {"managedFields": []}}, media_type)
    assert answer.status == 200
    assert answer.at("metadata.managedFields") is None


def test_an_error_shows_the_invalid_patch_result_sorted_by_field_name(client: Client) -> None:
    answer = client.patch(MAP, {"metadata": "x"}, MERGE)
    shown = (
        '"{\\"apiVersion\\":\\"v1\\",\\"data\\":{\\"x\\":\\"y\\"},\\"kind\\":\\"ConfigMap\\",\\"metadata\\":\\"x\\"}"'
    )
    assert shown in str(answer.at("message"))


@pytest.mark.parametrize("media_type", [APPLY, STRATEGIC])
def test_32_bit_integers_wrap_around(client: Client, media_type: str) -> None:
    assert client.post(WEB.rpartition("/")[0], deployment()).status == 201
    constraint: Document = {"maxSkew": 3_000_000_000, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    body = deployment(topologySpreadConstraints=[constraint])
    answer = client.patch(f"{WEB}?fieldManager=m&force=true" if media_type == APPLY else WEB, body, media_type)
    assert answer.status == 422
    assert "maxSkew: Invalid value: -1294967296: must be greater than zero" in str(answer.at("message"))


def test_an_invalid_generate_name_is_refused(client: Client) -> None:
    spec: Document = {"group": "g.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    spec["insecureSkipTLSVerify"], spec["service"] = True, {"namespace": "default", "name": "s"}
    body: Document = {"metadata": {"name": "v1.g.example.com", "generateName": "abc"}, "spec": spec}
    body |= {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
    answer = client.post("/apis/apiregistration.k8s.io/v1/apiservices", body)
    assert answer.status == 422
    assert answer.at("details.causes.0.field") == "metadata.generateName"


def test_a_field_with_a_disabled_feature_gate_is_dropped(client: Client) -> None:
    body: Document = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "d.example.com"}}
    body["spec"] = {"preventPodSchedulingIfMissing": True}
    answer = client.post("/apis/storage.k8s.io/v1/csidrivers", body)
    assert answer.status == 201
    assert answer.at("spec.preventPodSchedulingIfMissing") is None


def test_runtime_class_updates_are_validated_like_creates(client: Client) -> None:
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    body: Document = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, "handler": "h"}
    assert client.post(path, body).status == 201
    answer = client.patch(f"{path}/r", {"scheduling": {"tolerations": [{"operator": "Equal"}]}})
    assert answer.status == 422
    assert answer.at("details.causes.0.field") == "scheduling.tolerations[0].operator"


def test_an_applied_configuration_is_parsed_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def parse(body: bytes) -> Parsed:
        parsed.append(body)
        return parse_yaml(body)

    monkeypatch.setattr(decoding, "parse_yaml", parse)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "z"}}
    path = f"{MAP}?fieldManager=me&force=true&fieldValidation=Strict"
    assert client.patch(path, body, APPLY).status == 200
    assert len(parsed) == 1


def test_applying_a_new_order_of_items_counts_as_a_change_of_the_manager() -> None:
    client = Client()
    place = "/api/v1/namespaces/default/serviceaccounts/a"
    account: Document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    assert client.post(place.rpartition("/")[0], {**account, "secrets": [{"name": "x"}, {"name": "y"}]}).status == 201

    for secrets in ([{"name": "y"}, {"name": "x"}], [{"name": "x"}, {"name": "y"}]):
        answer = client.patch(f"{place}?fieldManager=m", {**account, "secrets": secrets}, APPLY)
        assert answer.at("secrets") == secrets
        assert "time" in answer.at("metadata.managedFields")[0]  # type: ignore[index]


def test_an_error_shows_owner_references_in_the_order_of_their_fields() -> None:
    client = Client()
    owners: list[Document] = [
        {"uid": name, "blockOwnerDeletion": True, "controller": True, "name": name, "kind": "Pod", "apiVersion": "v1"}
        for name in ("a", "b")
    ]
    answer = client.post(MAP.rpartition("/")[0], {"metadata": {"name": "b", "ownerReferences": owners}})
    want = '{"apiVersion":"v1","kind":"Pod","name":"a","uid":"a","controller":true,"blockOwnerDeletion":true},'
    assert want in str(answer.at("message"))


def test_the_difference_of_a_refused_pod_shows_no_empty_list_of_init_containers() -> None:
    client = Client()
    pod: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
    assert client.post("/api/v1/namespaces/default/pods", pod).status == 201
    answer = client.patch(
        "/api/v1/namespaces/default/pods/p", {"spec": {"initContainers": [], "hostname": "h"}}, STRATEGIC
    )
    assert answer.status == 422
    assert "InitContainers" not in str(answer.at("message"))


def test_a_json_patch_that_makes_a_list_of_the_object_is_refused_with_its_result(client: Client) -> None:
    patch = [{"op": "replace", "path": "", "value": [1, 2]}, {"op": "remove", "path": "/0"}]
    answer = client.patch(MAP, patch, JSON_PATCH)
    assert (answer.status, answer.at("details.causes.0.field")) == (422, "patch")
    assert 'Invalid value: "[2]": couldn\'t get version/kind; json parse error: ' in str(answer.at("message"))
