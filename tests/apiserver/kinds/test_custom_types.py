"""Custom resources in structured merge, and the names of their definitions."""

from __future__ import annotations

from typing import cast

import pytest

from tests.apiserver.client import APPLY, Client, Document

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RULE = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "protocol": {"type": "string", "default": "TCP"}},
}


@pytest.fixture
def client() -> Client:
    rules = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "protocol"],
        "items": _RULE,
    }
    schema = {"type": "object", "properties": {"rules": rules}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "e.com", "scope": "Cluster", "names": {"plural": "fires", "kind": "Fire"}, "versions": [version]}
    client = Client()
    assert client.post(_DEFINITIONS, {"metadata": {"name": "fires.e.com"}, "spec": spec}).status == 201
    return client


def test_the_owner_of_an_item_is_found_by_the_defaults_of_its_keys(client: Client) -> None:
    config = {"apiVersion": "e.com/v1", "kind": "Fire", "metadata": {"name": "f"}, "rules": [{"name": "a"}]}

    applied = client.patch("/apis/e.com/v1/fires/f?fieldManager=m", config, APPLY)

    [entry] = cast("list[Document]", applied.at("metadata.managedFields"))
    item: Document = {".": {}, "f:name": {}}
    assert entry["fieldsV1"] == {"f:rules": {'k:{"name":"a","protocol":"TCP"}': item}}


def test_changed_names_are_accepted_after_the_update(client: Client) -> None:
    path = f"{_DEFINITIONS}/fires.e.com"

    updated = client.patch(path, {"spec": {"names": {"shortNames": ["fi"]}}})

    assert "shortNames" not in cast("Document", updated.at("status.acceptedNames"))
    assert client.get(path).at("status.acceptedNames.shortNames") == ["fi"]
