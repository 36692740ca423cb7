"""``stringData`` is write-only: it is merged into ``data`` by every kind of write."""

from __future__ import annotations

import base64

import pytest

from tests.apiserver.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client, Document

SECRETS = "/api/v1/namespaces/default/secrets"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(**parts: object) -> Document:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **parts}


@pytest.fixture
def client() -> Client:
    made = Client()
    created = made.post(SECRETS, secret(data={"a": b64("1"), "b": b64("2")}, stringData={"b": "two", "c": "é"}))
    assert created.status == 201
    return made


def test_a_create_merges_string_data_into_data_and_owns_it(client: Client) -> None:
    found = client.get(f"{SECRETS}/s")
    assert found.at("data") == {"a": b64("1"), "b": b64("two"), "c": b64("é")}
    assert "stringData" not in found.document
    fields = found.at("metadata.managedFields.0.fieldsV1")
    assert isinstance(fields, dict)
    assert "f:stringData" not in fields
    assert set(fields["f:data"]) == {".", "f:a", "f:b", "f:c"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(MERGE, {"stringData": {"a": "x"}}, id="a merge patch"),
        pytest.param(STRATEGIC, {"stringData": {"a": "x"}}, id="a strategic merge patch"),
        pytest.param(JSON_PATCH, [{"op": "add", "path": "/stringData", "value": {"a": "x"}}], id="a JSON patch"),
        pytest.param(APPLY, secret(stringData={"a": "x"}), id="an applied configuration"),
    ],
)
def test_patches_merge_string_data_into_data(client: Client, content_type: str, body: object) -> None:
    query = "fieldManager=m" + ("&force=true" if content_type == APPLY else "")
    answer = client.patch(f"{SECRETS}/s?{query}", body, content_type)
    assert answer.status == 200
    assert answer.at("data") == {"a": b64("x"), "b": b64("two"), "c": b64("é")}
    assert "stringData" not in client.get(f"{SECRETS}/s").document


def test_an_update_replaces_data_and_merges_string_data(client: Client) -> None:
    answer = client.put(f"{SECRETS}/s", secret(data={"a": b64("1")}, stringData={"z": ""}))
    assert answer.at("data") == {"a": b64("1"), "z": ""}
    assert client.put(f"{SECRETS}/s", secret(data={"a": b64("1")}, stringData={})).at("data") == {"a": b64("1")}
