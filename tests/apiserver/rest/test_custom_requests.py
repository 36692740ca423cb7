"""Requests for custom resources (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

import pytest

from tests.apiserver.client import Client, Document

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"
INTEGER: Document = {"type": "integer"}


def schema(**properties: Document) -> Document:
    """Return the schema of an object with a spec with these properties and a status."""
    status = {"type": "object", "properties": {"replicas": INTEGER}}
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}, "status": status},
    }


def make_client(*versions: Document, **properties: Document) -> Client:
    """Return a client of an API with the resource `gadgets`."""
    shown: Document = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema(size=INTEGER, **properties)},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"},
        },
    }
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [shown, *({**shown, "storage": False, **each} for each in versions)],
    }
    client = Client()
    assert client.post(DEFINITIONS, {"metadata": {"name": "gadgets.example.com"}, "spec": spec}).status == 201
    return client


def gadget(name: str = "g", **spec: object) -> Document:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("of_field", "value", "want"),
    [
        pytest.param({"x-kubernetes-int-or-string": True}, None, {}, id="a number or text"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, None, {}, id="a field of any type"),
        pytest.param(
            {"type": "array", "items": {**INTEGER, "default": 7}}, [None, 1], {"x": [7, 1]}, id="an item with a default"
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {**INTEGER, "default": 8}},
            {"a": None},
            {"x": {"a": 8}},
            id="a value of a map with a default",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": INTEGER}, {"a": None}, {"x": {}}, id="a value of a map"
        ),
    ],
)
def test_nulls_are_dropped_or_replaced_by_the_default(of_field: Document, value: object, want: Document) -> None:
    client = make_client(x=of_field)

    assert client.post(GADGETS, gadget(x=value)).at("spec") == want
