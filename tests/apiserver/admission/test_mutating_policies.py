"""MutatingAdmissionPolicies: what a patched object must fulfill."""

from __future__ import annotations

from tests.apiserver.client import Client, Document

_POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"


def _client(expression: str, failure_policy: str) -> Client:
    client = Client()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
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
