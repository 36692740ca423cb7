"""Managers without a name, which clients can write into `managedFields`."""

from __future__ import annotations

from tests.apiserver.client import JSON_PATCH, MERGE, Client, Document


def test_a_manager_without_a_name_is_shown_without_it() -> None:
    client = Client()
    maps = "/api/v1/namespaces/default/configmaps"
    assert client.post(maps, {"metadata": {"name": "m"}, "data": {"a": "b"}}).status == 201

    patch: list[Document] = [{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": None}]
    assert client.patch(f"{maps}/m", patch, JSON_PATCH).status == 200
    found = client.patch(f"{maps}/m", {"data": {"a": "c"}}, MERGE).at("metadata.managedFields")
    assert isinstance(found, list)
    assert "manager" not in found[0]
