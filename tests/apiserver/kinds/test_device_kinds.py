"""Selectors of device classes, claims and templates: refused in upstream's words when they can't be used."""

from __future__ import annotations

import pytest

from bayplan.apiserver.validation.claim_status import claim_status
from bayplan.apiserver.validation.engine import Causes
from tests.apiserver.client import Client, Document

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"


def selectors(*expressions: str) -> list[Document]:
    return [{"cel": {"expression": each}} for each in expressions]


def document(kind: str, spec: Document) -> Document:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def claim(*expressions: str) -> Document:
    exactly = {"deviceClassName": "c", "selectors": selectors(*expressions)}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        pytest.param(CLASSES, document("DeviceClass", {"selectors": selectors("true", "x" * 10_241)}),
                     "spec.selectors[1].cel.expression", "Too long: may not be more than 10240 bytes", id="too long"),
        pytest.param(CLAIMS, document("ResourceClaim", claim(*["true"] * 33)),
                     "spec.devices.requests[0].exactly.selectors", "Too many: 33: must have at most 32 items", id="too many"),
        pytest.param(CLAIMS, document("ResourceClaim", claim("nope")),
                     "spec.devices.requests[0].exactly.selectors[0].cel.expression",
                     'Invalid value: "nope": compilation failed: ERROR: <input>:1:1: undeclared reference to \'nope\'',
                     id="an unknown name"),
        pytest.param(TEMPLATES, document("ResourceClaimTemplate", {"spec": claim("'a'.matches('(')")}),
                     "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression",
                     "Invalid value: \"'a'.matches('(')\": compilation failed: ERROR: <input>:1:13: invalid matches argument",
                     id="a wrong pattern"),
        pytest.param(CLASSES, document("DeviceClass", {"selectors": selectors("'a'.find('(') == ''")}),
                     "spec.selectors[0].cel.expression",
                     "Internal error: program instantiation failed: error parsing regexp: missing closing ): `(`",
                     id="a wrong constant"),
    ],
)  # fmt: skip
def test_invalid_device_selectors_are_refused(path: str, body: Document, field: str, message: str) -> None:
    answer = Client().post(path, body)
    assert answer.status == 422
    assert answer.at("details.causes.0.field") == field
    assert str(answer.at("details.causes.0.message")).startswith(message)


def test_a_valid_device_selector_is_stored_and_changes_are_validated() -> None:
    client = Client()
    fine = document("DeviceClass", {"selectors": selectors('device.driver == "gpu.example.com"')})
    assert client.post(CLASSES, fine).status == 201
    assert client.patch(f"{CLASSES}/x", {"metadata": {"labels": {"a": "b"}}}).status == 200
    assert client.patch(f"{CLASSES}/x", {"spec": {"selectors": selectors("nope")}}).status == 422


def test_one_write_with_many_long_selectors_is_accepted() -> None:
    long = "&&".join(["true"] * 1_600)
    assert Client().post(CLAIMS, document("ResourceClaim", claim(*[long] * 32))).status == 201


@pytest.mark.parametrize(
    ("share", "want"),
    [
        pytest.param("6233c036-ec68-580c-856e-e4e57fdc8800", "", id="a valid identifier"),
        pytest.param("x", "error validating uid: invalid UUID length: 1", id="too short"),
        pytest.param("é" * 18, "error validating uid: invalid UUID format", id="the length is that of the bytes"),
        pytest.param("é" * 36, "error validating uid: invalid UUID length: 72", id="too long in bytes"),
    ],
)
def test_the_share_of_a_device_is_an_identifier(share: str, want: str) -> None:
    causes: Causes = []
    device: Document = {"driver": "d.example.com", "pool": "p", "device": "x", "shareID": share}
    claim_status({"status": {"devices": [device]}}, {}, causes)
    found = [each.message for each in causes if each.field == "status.devices[0].shareID"]
    assert [text.rpartition('": ')[2] for text in found] == ([want] if want else [])
