"""Admission of objects that are not stored: Scales, Evictions and Bindings."""

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


def evict(client: Client) -> Answer:
    return client.post(f"{PODS}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}})


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
    sent = {"pods/eviction": evict, "deployments/scale": scale}.get(resource, lambda client: bind(client, "a"))
    message = sent(client).at("message")
    assert str(message).endswith(f"failed to convert patch object to typed object: {want}")


def test_policies_see_the_binding_of_a_missing_pod() -> None:
    spec: Document = {"validations": [{"expression": "object.metadata.name == 'a'", "message": "only a"}]}
    client = client_with("ValidatingAdmissionPolicy", spec, "pods/binding")
    assert bind(client, "missing").status == 422
