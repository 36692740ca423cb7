"""The response to a write that removes the last finalizer of a deleted object, and with it the object."""

from __future__ import annotations

from tests.apiserver.client import Client, Document

_NODES = "/apis/storage.k8s.io/v1/csinodes"


def test_the_last_write_to_an_object_shows_an_empty_list_as_it_was_sent() -> None:
    client = Client()
    body: Document = {"metadata": {"name": "n", "finalizers": ["a.b/c"]}, "spec": {"drivers": []}}
    assert client.post(_NODES, body).at("spec.drivers") is None  # As upstream's storage returns it.
    version = client.delete(f"{_NODES}/n").at("metadata.resourceVersion")

    last: Document = {"metadata": {"name": "n", "resourceVersion": version}, "spec": {"drivers": []}}
    assert client.put(f"{_NODES}/n", last).at("spec.drivers") == []
    assert client.get(f"{_NODES}/n").status == 404
