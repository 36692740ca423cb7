"""The data of ControllerRevisions: compared as the text that was sent."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.apiserver.codec.raw_values import OF_TYPE, RawObject, canonical, compacted, sent
from tests.apiserver.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client

_PATH = "/apis/apps/v1/namespaces/default/controllerrevisions"


def _body(data: str, revision: int = 1) -> bytes:
    return f'{{"metadata":{{"name":"r"}},"revision":{revision},"data":{data}}}'.encode()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('{ "b" : [1, 2.0], "a": " x" }', '{"b":[1,2.0],"a":" x"}', id="blanks outside of texts"),
        pytest.param(
            '{"a":"<&>","b":"\\" \\\\"}', '{"a":"\\u003c\\u0026\\u003e","b":"\\" \\\\"}', id="escapes for HTML"
        ),
    ],
)
def test_text_is_compacted_as_in_go(text: str, want: str) -> None:
    assert compacted(text) == want


def test_a_decoded_value_is_written_with_sorted_keys_and_short_numbers() -> None:
    assert canonical({"b": 1.0, "a": {"d": 1000.0, "c": None}}) == '{"a":{"c":null,"d":1000},"b":1}'


def test_the_texts_of_many_items_are_found_in_linear_time() -> None:
    count = 10_000
    items = ",".join(f'{{"opaque":{{"driver":"d","parameters":{{ "b":{each}, "a":1.0 }}}}}}' for each in range(count))
    body = f'{{"spec":{{"config":[{items},{{"opaque":null}},3]}}}}'.encode()
    found = sent(OF_TYPE["io.k8s.api.resource.v1.DeviceClass"], msgspec.json.decode(body), body)
    spec = found["spec"]
    assert isinstance(spec, dict)
    *configurations, without_opaque, number = spec["config"]
    texts = [each["opaque"]["parameters"] for each in configurations]
    assert all(isinstance(each, RawObject) for each in texts)
    assert [each.text for each in texts] == [f'{{ "b":{each}, "a":1.0 }}' for each in range(count)]
    assert (without_opaque, number) == ({"opaque": None}, 3)


@pytest.mark.parametrize(
    ("data", "again", "want"),
    [
        pytest.param('{"b":1,"a":2}', '{"b":1,"a":2}', 200, id="the same text"),
        pytest.param('{ "b": 1 }', '{ "b": 1 }', 200, id="the same blanks"),
        pytest.param('{ "b": 1 }', '{"b":1}', 422, id="without the blanks"),
        pytest.param('{"b":1,"a":2}', '{"a":2,"b":1}', 422, id="in another order"),
        pytest.param('{"b":1.0}', '{"b":1}', 422, id="another number format"),
        pytest.param("{}", "{}", 200, id="the same empty object"),
        pytest.param("{}", "null", 422, id="null instead of an empty object"),
    ],
)
def test_an_update_must_repeat_the_text(data: str, again: str, want: int) -> None:
    client = Client()
    assert client.call("POST", _PATH, _body(data)).status == 201
    assert client.call("PUT", f"{_PATH}/r", _body(again, 2)).status == want


@pytest.mark.parametrize(
    ("data", "content_type", "want"),
    [
        pytest.param('{"b":1,"a":2}', MERGE, 200, id="a merge patch keeps the order"),
        pytest.param('{"b": 1}', MERGE, 422, id="a merge patch removes blanks"),
        pytest.param('{"a":2,"b":1}', STRATEGIC, 200, id="a strategic merge patch keeps sorted keys"),
        pytest.param('{"b":1,"a":2}', STRATEGIC, 422, id="a strategic merge patch sorts keys"),
        pytest.param('{"a":1.0}', STRATEGIC, 422, id="a strategic merge patch shortens numbers"),
    ],
)
def test_a_patch_of_other_fields_writes_the_data_again(data: str, content_type: str, want: int) -> None:
    client = Client()
    client.call("POST", _PATH, _body(data))
    assert client.patch(f"{_PATH}/r", {"revision": 5}, content_type).status == want


def test_a_refusal_shows_the_text_after_a_merge_patch() -> None:
    client = Client()
    client.call("POST", _PATH, _body('{"z":{"y":1.0},"b":1}'))
    answer = client.patch(f"{_PATH}/r", {"data": {"b": 2}}, MERGE)
    assert answer.at("details.causes.0.message") == 'Invalid value: {"b":2,"z":{"y":1.0}}: field is immutable'


def test_repeated_keys_in_the_data_are_not_reported() -> None:
    answer = Client().call("POST", f"{_PATH}?fieldValidation=Strict", _body('{"k":1,"k":2}'))
    assert (answer.status, answer.at("data")) == (201, {"k": 2})


def test_repeated_keys_in_the_parameters_of_devices_are_not_reported_but_others_are() -> None:
    head = b'{"metadata":{"name":"c"},"spec":{"config":[{"opaque":{"driver":"a.b",'
    answer = Client().call(
        "POST",
        "/apis/resource.k8s.io/v1/deviceclasses?fieldValidation=Warn",
        head + b'"parameters":{"k":1,"k":[{"l":1,"l":2}]},"driver":"a.b"}}]}}',
    )
    assert (answer.status, answer.at("spec.config.0.opaque.parameters")) == (201, {"k": [{"l": 2}]})
    warnings = [text for name, text in answer.headers if name.lower() == "warning"]
    assert len(warnings) == 1
    assert 'duplicate field \\"spec.config[0].opaque.driver\\"' in warnings[0]


def test_a_json_patch_distinguishes_number_formats() -> None:
    client = Client()
    client.call("POST", _PATH, _body('{"y":1.0}'))
    test = [{"op": "test", "path": "/data/y", "value": 1}]
    assert client.call("PATCH", f"{_PATH}/r", test, content_type=JSON_PATCH).status == 422


def test_applied_yaml_has_sorted_keys() -> None:
    client = Client()
    head = b"apiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: r}\nrevision: 1\n"
    for data in (b"data: {b: 1, a: 2}\n", b"data: {a: 2, b: 1}\n"):
        answer = client.call("PATCH", f"{_PATH}/r?fieldManager=m", head + data, content_type=APPLY)
        assert answer.status in (200, 201)
    assert client.patch(f"{_PATH}/r", {"metadata": {"labels": {"a": "b"}}}, STRATEGIC).status == 200


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param(b'{"a": 1e400}', {"a": None}, id="a number out of range"),
        pytest.param(b'{"a":[-1e999, 1.0]}', {"a": [None, 1]}, id="a negative number out of range in a list"),
        pytest.param(b'{"a":"\xff"}', {"a": "\ufffd"}, id="invalid UTF-8"),
        pytest.param(b'{"\xff":1}', {"\ufffd": 1}, id="invalid UTF-8 in a name"),
        pytest.param(b'{"a":"\\ud800"}', {"a": "\ufffd"}, id="an unpaired surrogate"),
        pytest.param(b'{"\\udc00":1}', {"\ufffd": 1}, id="an unpaired surrogate in a name"),
    ],
)
def test_unreadable_data_is_stored_in_readable_form(data: bytes, want: object) -> None:
    client = Client()
    body = b'{"metadata":{"name":"r"},"revision":1,"data":' + data + b"}"
    assert client.call("POST", f"{_PATH}?dryRun=All", body).at("data") == want
    created = client.call("POST", _PATH, body)
    assert (created.status, created.at("data")) == (201, want)
    assert client.call("PUT", f"{_PATH}/r", body).status == 200
    assert client.get(f"{_PATH}/r").at("data") == want
    assert client.get(_PATH).at("items.0.data") == want
    assert client.call("DELETE", f"{_PATH}/r").status == 200
    assert client.get(f"{_PATH}/r").status == 404


def test_invalid_utf8_outside_of_the_data_keeps_the_data_as_sent() -> None:
    client = Client()
    body = b'{"metadata":{"name":"r","annotations":{"a":"\xff"}},"revision":1,"data":{"b":1,"a":2}}'
    assert client.call("POST", _PATH, body).status == 201
    assert client.call("PUT", f"{_PATH}/r", body).status == 200
    assert client.call("PUT", f"{_PATH}/r", body.replace(b'"b":1,"a":2', b'"a":2,"b":1')).status == 422


@pytest.mark.parametrize(
    ("patch", "content_type"),
    [
        pytest.param(b'{"data":{"b":-1e400}}', MERGE, id="a merge patch"),
        pytest.param(b'{"data":{"b":-1e400}}', STRATEGIC, id="a strategic merge patch"),
        pytest.param(b'[{"op":"add","path":"/data/b","value":-1e400}]', JSON_PATCH, id="a JSON patch"),
    ],
)
def test_a_number_out_of_range_in_a_patch_is_shown_as_null(patch: bytes, content_type: str) -> None:
    client = Client()
    client.call("POST", _PATH, _body('{"a":1}'))
    answer = client.call("PATCH", f"{_PATH}/r", patch, content_type=content_type)
    assert answer.at("details.causes.0.message") == 'Invalid value: {"a":1,"b":null}: field is immutable'


@pytest.mark.parametrize(
    ("data", "patch", "want"),
    [
        pytest.param('{"a":[1]}', b'{"data":{"a":[1]}}', 500, id="a list for a list"),
        pytest.param('{"a":{"b":1}}', b'{"data":{"a":{}}}', 500, id="a map for a map"),
        pytest.param('{"a":{"b":1}}', b'{"data":{"a":[]}}', 422, id="a list for a map"),
        pytest.param('{"a":1}', b'{"data":{"b":[]}}', 422, id="a new list"),
    ],
)
def test_lists_and_maps_in_the_data_cannot_be_merged(data: str, patch: bytes, want: int) -> None:
    client = Client()
    client.call("POST", _PATH, _body(data))
    answer = client.call("PATCH", f"{_PATH}/r", patch, content_type=STRATEGIC)
    assert answer.status == want
    text = 'unable to find api field in struct RawExtension for the json field "a"'
    assert (answer.at("message") == text) is (want == 500)
