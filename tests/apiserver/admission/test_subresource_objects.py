"""Policies and objects that are not stored: Scales, Evictions, Bindings, and objects that a later step refuses."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document
from tests.apiserver.client import MERGE, PODS, Answer, Client, pod

POLICIES = "/apis/admissionregistration.k8s.io/v1"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def client_with(kind: str, spec: Document, resource: str) -> Client:
    """Return a client of an API with one policy for a resource, and a pod and a Deployment named ``a``."""
    client = Client()
    client.post(PODS, pod("a"))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.post(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": deployment})
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
    plural = f"{kind.removesuffix('Policy').lower()}policies"
    policy = {"metadata": {"name": "p"}, "spec": {**spec, "matchConstraints": {"resourceRules": [rule]}}}
    assert client.post(f"{POLICIES}/{plural}", policy).status == 201
    binding: Document = {"policyName": "p"} | ({"validationActions": ["Deny"]} if kind.startswith("Val") else {})
    answer = client.post(f"{POLICIES}/{plural[:-3]}ybindings", {"metadata": {"name": "p"}, "spec": binding})
    assert answer.status == 201
    return client


def evict(client: Client, name: str = "a") -> Answer:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return client.post(f"{PODS}/{name}/eviction", eviction)


def bind(client: Client, name: str) -> Answer:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": "n"},
    }
    return client.post(f"{PODS}/{name}/binding", binding)


def scale(client: Client) -> Answer:
    return client.patch(f"{DEPLOYMENTS}/a/scale", {"spec": {"replicas": 2}}, MERGE)


@pytest.mark.parametrize(
    ("resource", "want"),
    [
        pytest.param("pods/eviction", "no corresponding type for policy/v1, Kind=Eviction", id="Eviction"),
        pytest.param("deployments/scale", "no corresponding type for autoscaling/v1, Kind=Scale", id="Scale"),
        pytest.param("pods/binding", ".spec: field not declared in schema", id="Binding"),
    ],
)
def test_applied_configurations_of_policies_have_the_type_of_the_subresource(resource: str, want: str) -> None:
    expression = {"expression": "Object{spec: Object.spec{nodeName: 'x'}}"}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": expression}
    spec: Document = {"reinvocationPolicy": "Never", "failurePolicy": "Fail", "mutations": [mutation]}
    client = client_with("MutatingAdmissionPolicy", spec, resource)
    answer = (
        evict(client)
        if resource.endswith("eviction")
        else scale(client)
        if resource.endswith("scale")
        else bind(client, "a")
    )
    message = answer.at("message")
    assert str(message).endswith(f"failed to convert patch object to typed object: {want}")


def test_policies_see_the_binding_of_a_missing_pod() -> None:
    spec: Document = {"validations": [{"expression": "object.metadata.name == 'a'", "message": "only a"}]}
    client = client_with("ValidatingAdmissionPolicy", spec, "pods/binding")
    assert bind(client, "missing").status == 422


def test_policies_see_the_eviction_of_a_missing_pod() -> None:
    spec: Document = {"validations": [{"expression": "object.metadata.name == 'a'", "message": "only a"}]}
    client = client_with("ValidatingAdmissionPolicy", spec, "pods/eviction")
    assert evict(client, "missing").status == 422


@pytest.mark.parametrize("quota", [False, True], ids=["the name is taken", "the quota is exceeded"])
def test_warnings_of_policies_are_sent_with_the_error_of_a_later_step(*, quota: bool) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    spec: Document = {"validations": [{"expression": "false", "message": "careful"}]}
    client = client_with("ValidatingAdmissionPolicy", spec, "configmaps")
    client.patch(f"{POLICIES}/validatingadmissionpolicybindings/p", {"spec": {"validationActions": ["Warn"]}})
    assert client.post(maps, {"metadata": {"name": "m"}}).status == 201
    if quota:
        quotas, hard = "/api/v1/namespaces/default/resourcequotas", {"count/configmaps": "1"}
        client.post(quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        client.patch(f"{quotas}/q/status", {"status": {"hard": hard, "used": hard}})
    answer = client.post(maps, {"metadata": {"name": "n" if quota else "m"}})
    assert answer.status == (403 if quota else 409)
    assert next(value for name, value in answer.headers if name == "warning").endswith(': careful"')


def test_a_taken_name_with_a_prefix_for_generated_names_may_be_tried_again() -> None:
    client = Client()
    metadata = {"name": "a", "generateName": "a-"}
    assert client.post(PODS, {**pod("a"), "metadata": metadata}).status == 201
    answer = client.post(PODS, {**pod("a"), "metadata": metadata})
    want = 'pods "a" already exists, the server was not able to generate a unique name for the object'
    assert (answer.status, answer.at("message"), answer.at("details.retryAfterSeconds")) == (409, want, 1)


@pytest.mark.parametrize("command", [["sh"], []], ids=["a repeated spec", "a repeated spec with an empty list"])
def test_policies_can_change_pods_whose_spec_was_sent_before(command: list[str]) -> None:
    expression = {"expression": "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}"}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": expression}
    spec: Document = {"reinvocationPolicy": "IfNeeded", "failurePolicy": "Fail", "mutations": [mutation]}
    client = client_with("MutatingAdmissionPolicy", spec, "pods")
    for name in ("x", "y", "z"):
        container: Document = {"name": "c", "image": "i", "command": command}
        answer = client.post(PODS, {"metadata": {"name": name}, "spec": {"containers": [container]}})
        assert (answer.status, answer.at("metadata.labels")) == (201, {"seen": "yes"})


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param("Object.spec.containers{name: 'side', image: 'i'}", "", id="its own type"),
        pytest.param(
            "Object.spec.containers{resources: Object.spec.resources{}}",
            'unexpected type name "Object.spec.resources", expected "Object.spec.containers.resources"',
            id="another type below",
        ),
    ],
)
def test_a_value_of_a_json_patch_can_have_any_type_of_object(value: str, want: str) -> None:
    expression = f"[JSONPatch{{op: 'add', path: '/spec/containers/-', value: {value}}}]"
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    spec: Document = {"reinvocationPolicy": "Never", "failurePolicy": "Fail", "mutations": [mutation]}
    answer = client_with("MutatingAdmissionPolicy", spec, "pods").post(PODS, pod("b"))
    assert answer.status == (403 if want else 201)
    assert want in str(answer.at("message"))
    assert want or answer.at("spec.containers.1.name") == "side"
