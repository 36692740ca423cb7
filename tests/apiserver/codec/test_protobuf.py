"""Protobuf bodies: decoded from the wire, and compared with the real server's JSON for the same objects."""

from __future__ import annotations

import base64
import gzip

import msgspec
import pytest

from bayplan.apiserver.codec.protobuf import MAGIC, ProtobufError, decode_envelope, decode_message
from bayplan.apiserver.codec.shape import shape_of
from bayplan.apiserver.schema.facts import api_facts
from tests.shared import recording


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


def test_a_protobuf_binding_decodes() -> None:
    metadata = field(1, "p") + field(2, "") + field(3, "default") + field(5, "uid-1")
    message = field(1, metadata) + field(2, field(1, "Node") + field(2, "") + field(3, "n1"))
    api_version, kind, raw = decode_envelope(envelope("v1", "Binding", message))
    assert (api_version, kind) == ("v1", "Binding")
    assert decode_message("io.k8s.api.core.v1.Binding", raw) == {
        "metadata": {"name": "p", "namespace": "default", "uid": "uid-1"},
        "target": {"kind": "Node", "name": "n1"},
    }


@pytest.mark.parametrize(
    ("type_name", "message", "want"),
    [
        pytest.param(
            "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
            field(1, 0),
            {"gracePeriodSeconds": 0},
            id="a pointer to 0 is kept",
        ),
        pytest.param(
            "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
            field(1, -1),
            {"gracePeriodSeconds": -1},
            id="a negative number",
        ),
        pytest.param(
            "io.k8s.api.core.v1.ContainerPort",
            field(1, "") + field(3, 80),
            {"containerPort": 80},
            id="an empty value is dropped",
        ),
        pytest.param(
            "io.k8s.api.core.v1.ContainerPort",
            field(99, "x") + field(3, 80),
            {"containerPort": 80},
            id="unknown numbers are skipped",
        ),
        pytest.param(
            "io.k8s.api.core.v1.Volume",
            field(1, "v") + field(2, field(2, b"")),
            {"name": "v", "emptyDir": {}},
            id="an embedded struct is inlined",
        ),
        pytest.param(
            "io.k8s.api.core.v1.ResourceRequirements",
            field(2, field(1, "cpu") + field(2, field(1, "500m"))),
            {"requests": {"cpu": "500m"}},
            id="a map of quantities",
        ),
        pytest.param(
            "io.k8s.api.coordination.v1.LeaseSpec",
            field(4, field(1, 1767225600) + field(2, 123456000)),
            {"renewTime": "2026-01-01T00:00:00.123456Z"},
            id="a time with microseconds",
        ),
        pytest.param(
            "io.k8s.api.policy.v1.PodDisruptionBudgetSpec",
            field(1, field(1, 1) + field(3, "50%")),
            {"minAvailable": "50%"},
            id="a number or a text",
        ),
    ],
)
def test_protobuf_messages_decode_to_documents(type_name: str, message: bytes, want: dict[str, object]) -> None:
    assert decode_message(type_name, message) == want


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param(b"\x0a\x05ab", "unexpected EOF", id="cut short"),
        pytest.param(b"\x22\x05ab", "unexpected EOF", id="an unknown field, cut short"),
        pytest.param(b"\x0b\x0c", "proto: wrong wireType", id="a group instead of a message"),
        pytest.param(b"\x7b", "unexpected EOF", id="a group without an end"),
        pytest.param(b"\x7b\x7f\x7c", "proto: illegal wireType 7", id="an unknown type in a group"),
        pytest.param(b"\x7c", "proto: Pod: wiretype end group for non-group", id="the end of a group"),
        pytest.param(b"\xff" * 12, "unexpected EOF", id="a varint without an end"),
        pytest.param(b"\x20" + b"\xff" * 10 + b"\x01", "unexpected EOF", id="a varint of eleven bytes"),
        pytest.param(b"\x08\x01", "proto: wrong wireType", id="a number instead of a message"),
    ],
)
def test_invalid_protobuf_messages_are_refused(data: bytes, want: str) -> None:
    with pytest.raises(ProtobufError) as problem:
        decode_message("io.k8s.api.core.v1.Pod", data)
    assert str(problem.value) == want


def test_a_group_instead_of_a_number_is_refused() -> None:
    with pytest.raises(ProtobufError, match="proto: wrong wireType"):
        decode_message("io.k8s.api.core.v1.PodSpec", b"\x23\x24")


def test_unknown_groups_are_skipped() -> None:
    assert decode_message("io.k8s.api.core.v1.Pod", b"\x7b\x08\x01\x7b\x12\x01a\x7c\x7c") == {}


def test_a_body_without_the_envelope_prefix_is_refused() -> None:
    with pytest.raises(ProtobufError, match=r"expected prefix \[107 56 115 0\]"):
        decode_envelope(b"{}")


def test_a_recorded_protobuf_object_decodes_to_the_recorded_json() -> None:
    path = recording("api", "content_types.jsonl.gz")
    exchanges = [msgspec.json.decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    by_id = {each["id"]: each["response"] for each in exchanges}
    body = base64.b64decode(by_id["content_types/002"]["base64"])
    api_version, kind, raw = decode_envelope(body)
    type_name = api_facts().kinds[f"{api_version}/{kind}"]
    decoded = {"apiVersion": api_version, "kind": kind, **decode_message(type_name, raw)}
    assert shape_of(type_name).read(decoded) == by_id["content_types/006"]["body"]
