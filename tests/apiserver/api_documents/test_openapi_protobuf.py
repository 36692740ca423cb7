"""Version 2 of the OpenAPI document as protobuf, for clients that accept nothing else."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from bayplan.apiserver.api_documents.openapi_protobuf import encode_openapi
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.base.plain_data import Document
from tests.apiserver.client import Client

OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
NEW = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
JSON = "application/json"


def asked(accept: str) -> Response:
    answer = asyncio.run(Client().api.handle(Request("GET", "/openapi/v2", {}, {"accept": accept})))
    assert isinstance(answer, Response)
    return answer


def fields(data: bytes) -> dict[int, list[bytes | int]]:
    """Return the fields of a message by number."""

    def varint(at: int) -> tuple[int, int]:
        number = shift = 0
        while True:
            number |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return number, at

    found: dict[int, list[bytes | int]] = {}
    at = 0
    while at < len(data):
        tag, at = varint(at)
        value: bytes | int
        if tag & 7 == 2:
            length, at = varint(at)
            value, at = data[at : at + length], at + length
        else:
            value, at = varint(at)
        found.setdefault(tag >> 3, []).append(value)
    return found


def inner(data: object, *numbers: int) -> bytes:
    """Return the first message, or text, at a path of field numbers."""
    for number in numbers:
        assert isinstance(data, bytes)
        data = fields(data)[number][0]
    assert isinstance(data, bytes)
    return data


def entries(data: bytes) -> dict[str, bytes]:
    """Return the named messages of a map, which are in its field 1."""
    return {inner(each, 1).decode(): inner(each, 2) for each in fields(data).get(1, [])}


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param(OLD, NEW, id="the type that kubectl 1.28 accepts"),
        pytest.param(NEW, NEW, id="the type that newer versions of kubectl accept"),
        pytest.param(f"{JSON}, {OLD}", JSON, id="the first of two"),
        pytest.param(f"{OLD};q=0.5, {JSON}", JSON, id="the one with the higher quality of two"),
        pytest.param("*/*", JSON, id="anything"),
        pytest.param("", JSON, id="an empty Accept header"),
    ],
)
def test_the_accept_header_selects_the_content_type(accept: str, want: str) -> None:
    answer = asked(accept)
    assert (answer.status, answer.content_type) == (200, want)


def test_a_content_type_that_is_not_served_is_refused_without_a_body() -> None:
    answer = asked("application/yaml")
    assert (answer.status, answer.body) == (406, b"")


def test_the_protobuf_message_contains_the_same_definitions_and_paths_as_the_json() -> None:
    document = msgspec.json.decode(asked(JSON).body)
    message = fields(asked(OLD).body)
    assert message[1] == [b"2.0"]
    definitions = entries(inner(asked(OLD).body, 9))
    assert definitions.keys() == document["definitions"].keys()
    properties = entries(inner(definitions["io.k8s.api.core.v1.PodSpec"], 25))
    assert properties.keys() == document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"].keys()
    containers = properties["containers"]
    extensions = {inner(each, 1).decode(): inner(each, 2, 2) for each in fields(containers)[31]}
    assert extensions["x-kubernetes-patch-merge-key"] == b'"name"'
    assert inner(containers, 22, 1) == b"array"
    assert inner(containers, 23, 1, 1) == b"#/definitions/io.k8s.api.core.v1.Container"
    paths = {inner(each, 1).decode(): inner(each, 2) for each in fields(inner(asked(OLD).body, 8))[2]}
    assert paths.keys() == document["paths"].keys()
    assert (
        inner(paths["/api/v1/nodes/{name}"], 2, 5).decode()
        == document["paths"]["/api/v1/nodes/{name}"]["get"]["operationId"]
    )


def test_encoding_an_unknown_member_raises_key_error() -> None:
    wrong: Document = {"swagger": "2.0", "nonsense": 1}
    with pytest.raises(KeyError, match="nonsense"):
        encode_openapi(wrong)
