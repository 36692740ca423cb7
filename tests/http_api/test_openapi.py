"""The OpenAPI document, and whether answers keep to it."""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any

from bayplan.http_api.openapi import openapi_document
from bayplan.http_api.operations import OPERATIONS, PARAMETERS, ROOT
from tests.http_api.lab import Lab, node, pod, run

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


def test_the_document_has_every_operation_with_what_it_takes() -> None:
    document: Any = openapi_document()
    told = {(path, method) for path, methods in document["paths"].items() for method in methods}
    assert told == {(f"{ROOT}{each.path}", each.method.lower()) for each in OPERATIONS} | {(f"{ROOT}/stream", "get")}
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


def test_the_document_is_served() -> None:
    async def test(lab: Lab) -> None:
        assert (await lab.get("/openapi.json"))["openapi"] == "3.1.0"

    run(test)


def test_whatever_is_asked_the_answer_is_one_of_those_that_are_told() -> None:
    document: Any = openapi_document()
    stream = random.Random(7)

    async def test(lab: Lab) -> None:
        await lab.settle()
        for operation in OPERATIONS:
            told = document["paths"][f"{ROOT}{operation.path}"][operation.method.lower()]["responses"]
            for _ in range(12):
                names = dict(PATHS)
                if "/nodes/" in operation.path:
                    names["name"] = stream.choice(("n1", "nobody"))
                path = operation.path.format(**names)
                query = {name: stream.choice(VALUES) for name in operation.query if stream.random() < 0.4}
                body = stream.choice(BODIES) if operation.body is not None else ""
                answer = await lab.client.request(
                    operation.method, f"{ROOT}{path}", params=query or None, content=body.encode("latin-1")
                )
                asked = (operation.method, path, query, body, answer.text[:300])
                assert str(answer.status_code) in told, asked
                if answer.status_code >= 400:
                    assert set(answer.json()["error"]) == {"what", "where", "got", "wanted", "hint", "request_id"}, (
                        asked
                    )
        await asyncio.sleep(0)

    run(test, node("n1"), pod("a"), pod("huge", cpu="90"))
