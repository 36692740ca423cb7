"""Protobuf answers: what is written can be read again, and a Status is byte for byte the recorded one."""

from __future__ import annotations

import pytest

from bayplan.apiserver.codec.protobuf import decode_envelope, decode_message
from bayplan.apiserver.codec.protobuf_encoding import encode_event, encode_object
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.rest.negotiation import PLAIN, Form, error_form, negotiate
from bayplan.apiserver.schema.facts import api_facts
from tests.apiserver.client import Document

PROTOBUF = "application/vnd.kubernetes.protobuf"
META: Document = {
    "name": "x",
    "namespace": "n",
    "labels": {"b": "2", "a": "1"},
    "creationTimestamp": "2026-01-02T03:04:05Z",
}
SERVICE: Document = {
    "apiVersion": "v1", "kind": "Service", "metadata": META,
    "spec": {"ports": [{"port": 80, "targetPort": "web"}, {"port": -1, "targetPort": 8080}], "clusterIPs": ["None"]},
}  # fmt: skip
LEASE: Document = {
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": META,
    "spec": {"renewTime": "2026-01-02T03:04:05.000006Z", "leaseTransitions": 0},
}  # fmt: skip
QUOTA: Document = {
    "apiVersion": "v1", "kind": "ResourceQuota", "metadata": META, "spec": {"hard": {"pods": "5", "cpu": "1500m"}},
}  # fmt: skip
SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": META, "data": {"k": "AP8="}, "immutable": False}
REVISION: Document = {
    "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": META, "data": {"a": [1, None]}, "revision": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(SERVICE, id="a Service, with a port by name and a negative number"),
        pytest.param(LEASE, id="a Lease, with a time of microseconds and a zero that is set"),
        pytest.param(QUOTA, id="a quota, with a map of amounts"),
        pytest.param(SECRET, id="a Secret, with bytes and a false that is set"),
        pytest.param(REVISION, id="a revision, with raw JSON"),
    ],
)
def test_encoded_objects_decode_to_the_same_document(document: Document) -> None:
    body = encode_object(document)
    assert body is not None
    api_version, kind, raw = decode_envelope(body)
    assert (api_version, kind) == (document["apiVersion"], document["kind"])
    shape = shape_of(api_facts().kinds[f"{api_version}/{kind}"])
    found = shape.read(decode_message(shape.type_name, raw))
    assert found == shape.read({name: item for name, item in document.items() if name not in ("apiVersion", "kind")})


def test_an_encoded_status_matches_the_recorded_bytes() -> None:
    status: Document = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": 'pods "absent" not found',
        "reason": "NotFound", "details": {"name": "absent", "kind": "pods"}, "code": 404,
    }  # fmt: skip
    assert encode_object(status) == (
        b'k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12M\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x17pods "absent" not found'
        b'"\x08NotFound*\x14\n\x06absent\x12\x00\x1a\x04pods(\x002\x000\x94\x03\x1a\x00"\x00'
    )


def test_a_watch_event_starts_with_its_length() -> None:
    frame = encode_event("ADDED", b"body")
    assert frame == len(frame[4:]).to_bytes(4, "big") + b"\n\x05ADDED\x12\x06\n\x04body"


def test_kinds_without_a_protobuf_schema_are_not_encoded() -> None:
    assert encode_object({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {}}) is None


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param(PROTOBUF, PROTOBUF, id="only protobuf"),
        pytest.param(f"{PROTOBUF},application/json", PROTOBUF, id="protobuf first"),
        pytest.param(f"application/json,{PROTOBUF}", "application/json", id="JSON first"),
        pytest.param(f"{PROTOBUF};q=0.5,application/json", "application/json", id="JSON of a higher quality"),
        pytest.param(f"*/*,{PROTOBUF}", PROTOBUF, id="wildcards last"),
        pytest.param(
            f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/yaml", "application/yaml", id="a table has no protobuf"
        ),
    ],
)
def test_the_first_acceptable_format_is_chosen(accept: str, want: str) -> None:
    assert negotiate(accept).media_type == want
    if "as=" not in accept:
        assert error_form(accept, pretty=False).media_type == want


_METADATA = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param(PROTOBUF, Form(PROTOBUF), id="only protobuf"),
        pytest.param(f"{PROTOBUF},application/json", PLAIN, id="also JSON"),
        pytest.param(f"{PROTOBUF},*/*", PLAIN, id="also anything"),
        pytest.param(f"{PROTOBUF},application/yaml", Form(PROTOBUF), id="also YAML"),
        pytest.param(f"{PROTOBUF},application/yaml,application/json", PLAIN, id="also YAML and JSON"),
        pytest.param(f"{PROTOBUF},application/json;{_METADATA}", Form(PROTOBUF), id="also metadata as JSON"),
        pytest.param(
            f"{PROTOBUF};{_METADATA},application/json",
            Form(PROTOBUF, "PartialObjectMetadata", wanted="PartialObjectMetadataList"),
            id="metadata, also objects as JSON",
        ),
        pytest.param(
            f"{PROTOBUF};{_METADATA},application/json,application/json;{_METADATA}",
            Form("application/json", "PartialObjectMetadata", wanted="PartialObjectMetadataList"),
            id="metadata, also as JSON",
        ),
    ],
)
def test_json_of_the_same_kind_replaces_protobuf_that_takes_too_long(accept: str, want: Form) -> None:
    assert negotiate(accept, json_first=True) == want
