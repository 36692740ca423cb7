"""Tokens of service accounts: their claims, refusals and lifetime."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from tests.apiserver.client import Client, Document

_BASE = "/api/v1/namespaces/default"
_TOKEN = f"{_BASE}/serviceaccounts/robot/token"
_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def _client() -> Client:
    client = Client()
    client.call("POST", f"{_BASE}/serviceaccounts", {"metadata": {"name": "robot"}})
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "x"}]}
    client.call("POST", f"{_BASE}/pods", {"metadata": {"name": "p"}, "spec": spec})
    return client


def _request(**spec: object) -> Document:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def _claims(token: object) -> Document:
    body = str(token).split(".")[1]
    claims: Document = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


def test_a_token_contains_subject_audience_pod_and_lifetime() -> None:
    client = _client()
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}

    answer = client.call("POST", _TOKEN, _request(audiences=["vault"], expirationSeconds=600, boundObjectRef=reference))

    claims = _claims(answer.at("status.token"))
    own = claims["kubernetes.io"]
    assert answer.status == 201
    assert isinstance(own, dict)
    assert (claims["sub"], claims["aud"], own["pod"]["name"]) == ("system:serviceaccount:default:robot", ["vault"], "p")
    assert int(str(claims["exp"])) - int(str(claims["iat"])) == 600
    assert answer.at("status.expirationTimestamp") == "2026-01-01T00:10:00Z"


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        pytest.param({"expirationSeconds": 599}, 422, "may not specify a duration less than 10 minutes", id="too short"),
        pytest.param({"expirationSeconds": 0}, 422, "may not specify a duration less than 10 minutes", id="no time at all"),
        pytest.param({"boundObjectRef": {}}, 400, "cannot bind token to object of type /, Kind=", id="an empty reference"),
        pytest.param(
            {"boundObjectRef": {"apiVersion": "x/y/z", "kind": "Pod"}}, 400, "Name parameter required.", id="a bad version"
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Node", "apiVersion": "v1"}}, 400, "Name parameter required.", id="no name"
        ),
        pytest.param({"expirationSeconds": 2**33}, 422, "may not specify a duration larger than 2^32 seconds", id="too long"),
        pytest.param(
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "o"}}, 404, 'pods "o" not found', id="no such pod"
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "no"}}, 409,
            "The object might have been deleted and then recreated", id="another pod of that name",
        ),
        pytest.param(
            {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}}, 400,
            "cannot bind token to object of type apps/v1, Kind=Deployment", id="a kind that tokens cannot be bound to",
        ),
    ],
)  # fmt: skip
def test_invalid_token_requests_are_refused(spec: Document, status: int, message: str) -> None:
    answer = _client().call("POST", _TOKEN, _request(**spec))

    assert (answer.status, str(answer.at("message")).endswith(message)) == (status, True)


def test_a_token_request_for_a_missing_account_returns_404() -> None:
    assert _client().call("POST", f"{_BASE}/serviceaccounts/o/token", _request()).status == 404


def _review(client: Client, token: object, **spec: object) -> object:
    return client.call("POST", _REVIEWS, {"spec": {"token": token, **spec}}).at("status.authenticated")


def test_a_token_is_authenticated_until_it_expires() -> None:
    client = _client()
    token = client.call("POST", _TOKEN, _request()).at("status.token")

    before = _review(client, token)
    client.seconds += 3601

    assert before is True
    assert _review(client, token) is None


@pytest.mark.parametrize("token", ["", "a", "a.b.c", "a.b.", "é.é.é"])
def test_malformed_tokens_are_not_authenticated(token: str) -> None:
    assert _review(_client(), token) is None


def test_a_token_for_another_audience_is_not_authenticated() -> None:
    client = _client()
    token = client.call("POST", _TOKEN, _request(audiences=["vault"])).at("status.token")

    assert _review(client, token) is None
    assert _review(client, token, audiences=["vault"]) is True


def test_a_token_of_a_deleted_account_is_not_authenticated() -> None:
    client = _client()
    token = client.call("POST", _TOKEN, _request()).at("status.token")
    client.call("DELETE", f"{_BASE}/serviceaccounts/robot")

    assert _review(client, token) is None


def test_tokens_can_be_verified_with_the_published_key() -> None:
    client = _client()
    token = str(client.call("POST", _TOKEN, _request()).at("status.token"))

    found = client.call("GET", "/openid/v1/jwks", accept="application/jwk-set+json")
    key: dict[str, str] = json.loads(str(found.body))["keys"][0]
    text, _, signature = token.rpartition(".")
    modulus, exponent = (int.from_bytes(_bytes(key[name])) for name in ("n", "e"))
    padded = pow(int.from_bytes(_bytes(signature)), exponent, modulus).to_bytes(256)
    assert padded[:2] == b"\0\1"
    assert padded.endswith(hashlib.sha256(text.encode()).digest())
    assert json.loads(_bytes(token.split(".")[0])) == {"alg": "RS256", "kid": key["kid"]}


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_openid_configuration_names_the_issuer_and_its_keys() -> None:
    answer = Client().get("/.well-known/openid-configuration")
    assert answer.at("issuer") == _claims_issuer()
    assert answer.at("jwks_uri") == "https://apiserver/openid/v1/jwks"


def _claims_issuer() -> object:
    return _claims(_client().call("POST", _TOKEN, _request()).at("status.token"))["iss"]


@pytest.mark.parametrize(
    ("method", "path", "accept", "want"),
    [
        pytest.param("GET", "/openid/v1/jwks", "application/json", 406, id="keys in another format"),
        pytest.param("HEAD", "/openid/v1/jwks", "*/*", 405, id="only the header"),
        pytest.param("POST", "/.well-known/openid-configuration", "*/*", 405, id="a write"),
        pytest.param("GET", "/openid/v1", "*/*", 404, id="another path"),
    ],
)
def test_other_requests_to_the_issuer_are_refused(method: str, path: str, accept: str, want: int) -> None:
    assert Client().call(method, path, accept=accept).status == want


def test_a_request_keeps_its_labels_and_names_the_right_account() -> None:
    client = _client()
    labeled: Document = {**_request(), "metadata": {"labels": {"a": "b"}}, "status": {"token": "x"}}
    answer = client.call("POST", _TOKEN, labeled)
    assert answer.at("metadata.labels") == {"a": "b"}
    assert answer.at("metadata.managedFields.0.fieldsV1.f:status") == {"f:token": {}}

    refused = client.call("POST", _TOKEN, {**_request(), "metadata": {"uid": "other"}})
    assert refused.status == 409
    assert "the UID in the token request (other) does not match the UID of the service account" in str(
        refused.at("message")
    )


def test_a_review_explains_wrong_audiences() -> None:
    client = _client()
    token = client.call("POST", _TOKEN, _request(audiences=["a", "b"])).at("status.token")
    review = {"spec": {"token": token, "audiences": ["c"]}}
    assert client.call("POST", _REVIEWS, review).at("status") == {
        "user": {},
        "error": '[invalid bearer token, token audiences ["a" "b"] is invalid for the target audiences ["c"]]',
    }
