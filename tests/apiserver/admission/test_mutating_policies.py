"""MutatingAdmissionPolicies: JSON patches that add unknown fields."""

from __future__ import annotations

from tests.apiserver.client import Client, Document

_POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"


def _client(expression: str, failure_policy: str, group: str = "", resource: str = "configmaps") -> Client:
    client = Client()
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    spec: Document = {
        "matchConstraints": {"resourceRules": [rule]},
        "failurePolicy": failure_policy,
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }
    assert client.post(_POLICIES, {"metadata": {"name": "p"}, "spec": spec}).status == 201
    assert client.post(_BINDINGS, {"metadata": {"name": "b"}, "spec": {"policyName": "p"}}).status == 201
    return client


def test_a_patch_with_an_unknown_field_is_an_internal_error_whatever_the_failure_policy() -> None:
    client = _client("[JSONPatch{op: 'add', path: '/foo', value: 'x'}]", "Ignore")

    found = client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})

    assert found.status == 500
    assert found.at("message") == 'Internal error occurred: strict decoding error: unknown field "foo"'


def test_an_unknown_field_within_an_object_is_named_with_its_path() -> None:
    client = _client("[JSONPatch{op: 'add', path: '/metadata/foo', value: 'x'}]", "Fail")

    found = client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "c"}})

    assert found.at("message") == 'Internal error occurred: strict decoding error: unknown field "metadata.foo"'


def test_fields_of_custom_resources_are_not_checked() -> None:
    client = _client("[JSONPatch{op: 'add', path: '/foo', value: 'x'}]", "Fail", "e.example", "fires")
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "fires", "kind": "Fire"}
    spec = {"group": "e.example", "scope": "Cluster", "names": names, "versions": [version]}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert client.post(path, {"metadata": {"name": "fires.e.example"}, "spec": spec}).status == 201

    document = {"apiVersion": "e.example/v1", "kind": "Fire", "metadata": {"name": "f"}}
    found = client.post("/apis/e.example/v1/fires", document)

    assert (found.status, "foo" in found.document) == (201, False)


def test_the_kind_of_a_subresource_decides_which_fields_are_known() -> None:
    client = _client("[JSONPatch{op: 'add', path: '/foo', value: 'x'}]", "Fail", "", "pods/eviction")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert client.post("/api/v1/namespaces/default/pods", pod).status == 201

    found = client.post("/api/v1/namespaces/default/pods/p/eviction", {"metadata": {"name": "p"}})

    assert found.at("message") == 'Internal error occurred: strict decoding error: unknown field "foo"'
