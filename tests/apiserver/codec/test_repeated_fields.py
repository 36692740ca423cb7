"""JSON objects with repeated fields: how their values are merged, and which errors are reported."""

from __future__ import annotations

import pytest

from tests.apiserver.client import PODS, Client, Document

_MAPS = "/api/v1/namespaces/default/configmaps"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HEAD = '"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}'


def _warnings(headers: list[tuple[str, str]]) -> list[str]:
    found = [value for name, value in headers if name == "warning"]
    return [each.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for each in found]


@pytest.mark.parametrize(
    ("members", "want"),
    [
        pytest.param('"data":{"a":"1"},"data":{"b":"2"}', {"a": "1", "b": "2"}, id="maps are merged"),
        pytest.param('"data":{"a":"1"},"data":null', None, id="null clears a map"),
        pytest.param('"data":{"a":"1","a":"2"}', {"a": "2"}, id="other values are replaced"),
    ],
)
def test_values_of_a_repeated_field_are_merged(members: str, want: Document | None) -> None:
    answer = Client().call("POST", _MAPS, f"{{{_HEAD},{members}}}".encode())

    assert answer.status == 201
    assert answer.at("data") == want


def test_structs_and_items_of_lists_are_merged() -> None:
    first = '[{"name":"c","image":"i","env":[{"name":"A"}]},{"name":"d","image":"j"}]'
    spec = f'{{"containers":{first},"containers":[{{"name":"e"}}]}}'
    body = f'{{"metadata":{{"name":"a"}},"metadata":{{"name":null,"labels":{{"x":"y"}}}},"spec":{spec}}}'
    answer = Client().call("POST", PODS, body.encode())

    assert answer.status == 201
    assert answer.at("metadata.name") == "a"
    assert answer.at("metadata.labels") == {"x": "y"}
    assert answer.at("spec.containers.0.name") == "e"
    assert answer.at("spec.containers.0.env") == [{"name": "A"}]
    assert answer.at("spec.containers.1") is None


def test_errors_about_fields_are_in_their_order_and_not_repeated() -> None:
    container = '{"name":"c","image":"i","nope":{"a":1,"a":2},"image":"i"}'
    labels = '"labels":{"a":"b","a":"c"}'
    body = f'{{"metadata":{{"name":"a","x":1,"x":1,{labels}}},"spec":{{"containers":[{container}],"containers":[{container}]}}}}'
    answer = Client().call("POST", PODS, body.encode())

    assert answer.status == 201
    assert _warnings(answer.headers) == [
        'unknown field "metadata.x"',
        'duplicate field "metadata.labels.a"',
        'unknown field "spec.containers[0].nope"',
        'duplicate field "spec.containers[0].image"',
        'duplicate field "spec.containers"',
    ]


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ('"data":{"a":5},"data":{"a":"b"},"immutable":"x"', "ConfigMap.data"),
        ('"data":{},"immutable":"x","data":{"a":5}', "ConfigMap.immutable"),
        ('"data":[],"data":{"a":"b"}', "ConfigMap.data"),
    ],
)
def test_the_first_value_that_does_not_fit_is_reported(members: str, field: str) -> None:
    answer = Client().call("POST", _MAPS, f"{{{_HEAD},{members}}}".encode())

    assert answer.status == 400
    assert f"into Go struct field {field} of type" in str(answer.at("message"))


def test_a_patch_reports_repeated_fields_before_unknown_ones() -> None:
    client = Client()
    assert client.call("POST", _MAPS, f"{{{_HEAD}}}".encode()).status == 201
    answer = client.call(
        "PATCH", f"{_MAPS}/a", b'{"nope":{"a":1},"data":{"a":"b","a":"c"}}', content_type="application/merge-patch+json"
    )

    assert _warnings(answer.headers) == ['duplicate field "data.a"', 'unknown field "nope"']


@pytest.mark.parametrize(
    ("members", "field", "want"),
    [
        pytest.param(
            '"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","type":"string"}}}',
            "items.properties.a.type",
            "string",
            id="schema or array",
        ),
        pytest.param(
            '"type":"object","additionalProperties":{"type":"integer","type":"string"}',
            "additionalProperties.type",
            "string",
            id="schema or boolean",
        ),
        pytest.param(
            '"type":"object","properties":{"b":{"type":"string"}},"default":{"b":"1","b":"2"}',
            "default",
            {"b": "2"},
            id="raw value",
        ),
    ],
)
def test_the_last_value_replaces_others_in_values_with_their_own_decoders(
    members: str, field: str, want: object
) -> None:
    answer = Client().call("POST", _DEFINITIONS, _definition(members))

    assert answer.status == 201
    assert answer.at(f"spec.versions.0.schema.openAPIV3Schema.properties.m.{field}") == want


def test_schemas_in_dependencies_are_decoded_before_they_are_refused() -> None:
    answer = Client().call("POST", _DEFINITIONS, _definition('"dependencies":{"a":{"type":"integer","type":"string"}}'))

    assert answer.status == 422
    assert "dependencies is not supported" in str(answer.at("message"))


def _definition(members: str) -> bytes:
    """Return a definition whose schema has a property `m` with some members."""
    schema = f'{{"type":"object","properties":{{"m":{{{members}}}}}}}'
    version = f'{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}'
    names = '"scope":"Namespaced","names":{"plural":"foos","kind":"Foo"}'
    spec = f'{{"group":"x.io",{names},"versions":[{version}]}}'
    return f'{{"metadata":{{"name":"foos.x.io"}},"spec":{spec}}}'.encode()
