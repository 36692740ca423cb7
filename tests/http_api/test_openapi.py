"""The OpenAPI document, and answers checked against it."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.http_api.openapi import openapi_document
from bayplan.http_api.operations import OPERATIONS, PARAMETERS, ROOT
from tests.http_api.contract_check import BrokenContract, check_answer
from tests.http_api.server_fixture import ServerFixture, node, pod, run

VALUES = (
    "", "0", "1", "-1", "7", "200", "201", "99999999999999999999", "1e3", "true", "x", "cpu", "-cpu", "name", "zone", "now",
    "default/a", "a=b", "label:x", "fit", "columns", "placed", "active", "scheduled", "2026-01-01T00:00:00Z", "\u0660", "\u202e",
    "<b>", "%", "a b", "Insufficient cpu", "'\"\\", "\x00", "http://127.0.0.1:1",
)  # fmt: skip
BODIES = (
    "",
    "{",
    "[]",
    "{}",
    '{"x": 1}',
    "null",
    '"text"',
    '{"name": 7}',
    '{"paused": "yes"}',
    '{"text": ""}',
    "a: [",
    "\xff",
)
PATHS = {"namespace": "default", "name": "a", "attempt": "latest", "id": "x"}


def test_the_openapi_document_lists_all_operations_with_parameters() -> None:
    document: Any = openapi_document()
    listed = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert listed == {(f"{ROOT}{each.path}", each.method.lower()) for each in OPERATIONS} | {(f"{ROOT}/stream", "get")}
    names = [each.handler.__name__ for each in OPERATIONS]
    assert len(set(names)) == len(names)
    used = {name for operation in OPERATIONS for name in operation.query} | {"topics"}
    assert used == set(PARAMETERS)
    for operation in OPERATIONS:
        one = document["paths"][f"{ROOT}{operation.path}"][operation.method.lower()]
        assert one["summary"].endswith((".", "there."))
        assert [each["name"] for each in one["parameters"]] == [
            *re.findall(r"\{(\w+)\}", operation.path),
            *operation.query,
        ]
    for name in re.findall(r'"#/components/schemas/(\w+)"', str(document).replace("'", '"')):
        assert name in document["components"]["schemas"]


def _schemas(value: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema of the document, with its path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("schema", "items", "additionalProperties") and isinstance(inner, dict):
                yield f"{path}.{name}", inner
            if name in ("properties", "schemas"):
                yield from ((f"{path}.{name}.{each}", schema) for each, schema in inner.items())
            if name in ("anyOf", "oneOf"):
                yield from ((f"{path}.{name}[{at}]", schema) for at, schema in enumerate(inner))
            yield from _schemas(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _schemas(inner, f"{path}[{at}]")


def test_no_schema_is_empty() -> None:
    document: Any = openapi_document()
    found = [*_schemas(document, "$")]
    assert len(found) > 1_000
    assert [path for path, schema in found if not schema] == []
    # Only Kubernetes' own objects may have a schema without a type.
    loose = {path.rpartition(".additionalProperties")[0] for path, schema in found if set(schema) <= {"description"}}
    assert all(path.endswith((".effective", ".items", "anyOf[0]", ".additionalProperties")) for path in loose), loose


def test_each_response_has_a_schema() -> None:
    document: Any = openapi_document()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if path.endswith("/stream") and status == "200":
                    continue
                schema = answer["content"]["application/json"]["schema"]
                assert schema.keys() <= {"$ref", "anyOf"}, (method, path)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({"moved": 1}, "", id="as in the contract"),
        pytest.param({"moves": 1}, "missing required field `moved`", id="a field has another name"),
        pytest.param({"moved": "1"}, "Expected `int`, got `str`", id="a field has another type"),
        pytest.param({"moved": 1, "more": 2}, "$.more is not in the contract", id="a field too many"),
    ],
)
def test_responses_are_checked_against_the_contract(value: object, want: str) -> None:
    body = json.dumps(value).encode()
    if not want:
        check_answer("POST", f"{ROOT}/queue/flush", 200, body)
        return
    with pytest.raises(BrokenContract, match=re.escape(want)):
        check_answer("POST", f"{ROOT}/queue/flush", 200, body)


def test_the_openapi_document_is_served() -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get("/openapi.json"))["openapi"] == "3.1.0"

    run(test)


def test_responses_to_random_requests_have_documented_status_codes() -> None:
    document: Any = openapi_document()
    stream = random.Random(7)

    async def test(fixture: ServerFixture) -> None:
        await fixture.settle()
        for operation in OPERATIONS:
            listed = document["paths"][f"{ROOT}{operation.path}"][operation.method.lower()]["responses"]
            for _ in range(12):
                names = dict(PATHS)
                if "/nodes/" in operation.path:
                    names["name"] = stream.choice(("n1", "nobody"))
                path = operation.path.format(**names)
                query = {name: stream.choice(VALUES) for name in operation.query if stream.random() < 0.4}
                body = stream.choice(BODIES) if operation.body is not None else ""
                answer = await fixture.client.request(
                    operation.method, f"{ROOT}{path}", params=query or None, content=body.encode("latin-1")
                )
                asked = (operation.method, path, query, body, answer.text[:300])
                assert str(answer.status_code) in listed, asked
                if answer.status_code >= 400:
                    assert set(answer.json()["error"]) == {"what", "where", "got", "wanted", "hint", "request_id"}, (
                        asked
                    )
        await asyncio.sleep(0)

    run(test, node("n1"), pod("a"), pod("huge", cpu="90"))
