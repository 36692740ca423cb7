"""Which writes increment the generation of an object."""

from __future__ import annotations

from tests.apiserver.client import Client, Document

_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def test_an_empty_list_of_webhooks_is_a_change_of_none() -> None:
    client = Client()
    sent: Document = {"metadata": {"name": "h"}, "webhooks": []}
    assert client.post(_HOOKS, sent).at("metadata.generation") == 1
    assert client.patch(f"{_HOOKS}/h", {"webhooks": []}).at("metadata.generation") == 2
    assert client.patch(f"{_HOOKS}/h", {"metadata": {"labels": {"a": "b"}}}).at("metadata.generation") == 2
