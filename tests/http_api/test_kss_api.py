"""The operations of kube-scheduler-simulator: recorded requests get answers of the same shape."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from bayplan.http_api.application import Service
from bayplan.http_api.kss_api import WATCHED, is_operation
from tests.http_api.server_fixture import ServerFixture, node, pod, run

RECORDED = Path(__file__).resolve().parents[2] / "conformance" / "annotations" / "backend-api.jsonl.gz"
CONFIGURATION = {
    "kind": "KubeSchedulerConfiguration",
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 9}]}},
        }
    ],
}
BETTER = {
    # In the recording, these requests failed because Docker was missing. Here they succeed.
    ("plain", "POST", "/api/v1/schedulerconfiguration", 500): 202,
    ("plain", "PUT", "/api/v1/reset", 500): 202,
    # An import accepts an unchanged export, including resource versions.
    ("plain", "POST", "/api/v1/import", 500): 200,
    ("stubbed-docker", "POST", "/api/v1/import", 500): 200,
}
BAD_JSON = "bad JSON"


def _recorded() -> Iterator[dict[str, Any]]:
    with gzip.open(RECORDED, "rt") as lines:
        yield from (json.loads(line) for line in lines)


def _want(case: dict[str, Any]) -> int:
    request = case["request"]
    key = case["run"], request["method"], request["path"], case["status"]
    return int(case["status"]) if case["note"] == BAD_JSON else BETTER.get(key, int(case["status"]))


def test_recorded_requests_get_responses_of_the_same_shape() -> None:
    cases = list(_recorded())
    assert len(cases) == 45

    async def test(fixture: ServerFixture) -> None:
        for case in cases:
            request = case["request"]
            if request["path"].startswith("/api/v1/nope"):
                # This path belongs to the Kubernetes API, which answers with a Status.
                assert not fixture.service.answers({"type": "http", "path": request["path"]})
                continue
            if case["endless"]:
                lines = await _lines(fixture.service, request["path"], len(WATCHED))
                _same_lines(lines, case["body"])
                continue
            headers = dict(request["headers"])
            origin = next((value for name, value in headers.items() if name.lower() == "origin"), "")
            answer = await fixture.client.request(
                request["method"], request["path"], headers=headers, content=request["body"] or ""
            )
            if origin and "localhost" not in origin:
                # The simulator lets pages of any origin read everything; Bayplan refuses this.
                assert answer.status_code == 403
                continue
            assert answer.status_code == _want(case), (case["run"], case["note"], answer.text)
            _same_shape(case, answer)

    run(test, node("n1"), pod("a"), pod("huge", cpu="90"), allowed_origins=["http://localhost:3000"])


def _same_shape(case: dict[str, Any], answer: httpx.Response) -> None:
    if answer.status_code != case["status"]:
        assert not answer.content
        return
    for name in ("Content-Type", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin"):
        assert answer.headers.get(name) == case["headers"].get(name), (case["note"], name)
    if not case["body"] or not case["body"].startswith("{"):
        assert answer.text == case["body"]
        return
    assert answer.text.endswith("}\n")
    ours, theirs = answer.json(), json.loads(case["body"])
    if "message" in theirs:
        assert ours == theirs
    elif "pods" in theirs:
        assert list(ours) == list(theirs)
        for field, value in theirs.items():
            if field == "schedulerConfig":
                assert set(theirs[field]) <= set(ours[field])
            elif not value and not ours[field]:
                assert ours[field] == value, field
            else:
                for item in ours[field] or []:
                    assert "metadata" in item
                    assert not {"kind", "apiVersion"} & set(item)
    else:
        assert set(theirs) <= set(ours)
        assert ours["kind"] == "KubeSchedulerConfiguration"


async def _lines(service: Service, path: str, wanted: int) -> list[dict[str, Any]]:
    """Read a stream, and disconnect after `wanted` lines or when no more arrive."""
    found: list[bytes] = []
    gone = asyncio.Event()
    address, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "raw_path": address.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost")],
    }

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
            assert (b"content-type", b"application/json") in message["headers"]
        elif message.get("body"):
            found.append(message["body"])
            if len(found) >= wanted:
                gone.set()

    task = asyncio.ensure_future(service(scope, receive, send))
    await asyncio.wait((task,), timeout=0.3)
    gone.set()
    await asyncio.wait_for(task, 5)
    return [json.loads(line) for line in b"".join(found).splitlines()]


def _same_lines(ours: list[dict[str, Any]], recorded: str) -> None:
    theirs = [json.loads(line) for line in recorded.splitlines()]
    for line in (*ours, *theirs):
        assert list(line) == ["Kind", "EventType", "Obj"]
        assert line["Kind"] in WATCHED
        assert line["EventType"] in ("ADDED", "MODIFIED", "DELETED")
        assert "kind" not in line["Obj"]


def test_a_watch_sends_existing_objects_and_then_changes() -> None:
    async def test(fixture: ServerFixture) -> None:
        first = await _lines(fixture.service, "/api/v1/listwatchresources", 1000)
        named = {(line["Kind"], line["Obj"]["metadata"]["name"]) for line in first}
        assert {("nodes", "n1"), ("pods", "a"), ("namespaces", "kube-system")} <= named
        assert ("priorityclasses", "system-node-critical") in named
        version = fixture.server.backend.store.revision
        query = "&".join(f"{parameter}={version}" for _, parameter in WATCHED.values())
        watching = asyncio.ensure_future(_lines(fixture.service, f"/api/v1/listwatchresources?{query}", 2))
        await asyncio.sleep(0.05)
        await fixture.create(node("n2"))
        await fixture.api("DELETE", "/api/v1/nodes/n2")
        lines = [line for line in await watching if line["Kind"] == "nodes"]
        assert lines[0]["EventType"] == "ADDED"
        assert lines[0]["Obj"]["metadata"]["name"] == "n2"
        later = await _lines(fixture.service, f"/api/v1/listwatchresources?{query}", 1000)
        assert [line["EventType"] for line in later if line["Kind"] == "nodes"][-1] == "DELETED"

    run(test, node("n1"), pod("a"))


def test_a_new_configuration_applies_immediately_with_all_fields() -> None:
    async def test(fixture: ServerFixture) -> None:
        given = {**CONFIGURATION, "percentageOfNodesToScore": 50}
        answer = await fixture.client.post("/api/v1/schedulerconfiguration", content=json.dumps(given))
        assert (answer.status_code, answer.content) == (202, b"")
        now = (await fixture.client.get("/api/v1/schedulerconfiguration")).json()
        assert now["percentageOfNodesToScore"] == 50
        weights = {each.name: each.weight for each in fixture.server.setup.configuration.profiles[0].plugins["score"]}
        assert weights["NodeAffinity"] == 9
        bad = {**CONFIGURATION, "profiles": [{"schedulerName": ""}]}
        refused = await fixture.client.post("/api/v1/schedulerconfiguration", content=json.dumps(bad))
        assert (refused.status_code, refused.text) == (500, '{"message":"Internal Server Error"}\n')
        assert (await fixture.client.get("/api/v1/schedulerconfiguration")).json() == now

    run(test, node("n1"))


def test_an_export_can_be_imported_into_another_server() -> None:
    exports: list[bytes] = []

    async def take(fixture: ServerFixture) -> None:
        exports.append((await fixture.client.get("/api/v1/export")).content)

    async def bring(fixture: ServerFixture) -> None:
        assert (await fixture.client.post("/api/v1/import", content=exports[0])).status_code == 200
        await fixture.settle()
        now = json.loads((await fixture.client.get("/api/v1/export")).content)
        before = json.loads(exports[0])
        for field in ("nodes", "pods", "priorityClasses", "namespaces"):
            names = [[item["metadata"]["name"] for item in side[field] or []] for side in (now, before)]
            assert names[0] == names[1]
        placed = {item["metadata"]["name"]: item["spec"].get("nodeName") for item in now["pods"]}
        assert placed == {item["metadata"]["name"]: item["spec"].get("nodeName") for item in before["pods"]}

    run(take, node("n1"), node("n2"), pod("a"), pod("b"), pod("huge", cpu="90"))
    run(bring)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({"pods": [{"metadata": {"name": "UPPER", "namespace": "default"}}]}, 500, id="an invalid pod"),
        pytest.param({"pods": [None]}, 500, id="null instead of a pod"),
        pytest.param({"schedulerConfig": {"parallelism": -1}}, 500, id="an invalid configuration"),
        pytest.param({"pods": 5}, 400, id="a number instead of a list"),
        pytest.param({"pods": {}}, 400, id="an object instead of a list"),
        pytest.param({"pods": [5]}, 400, id="a number instead of a pod"),
        pytest.param({"schedulerConfig": 5}, 400, id="a number instead of a configuration"),
    ],
)
def test_a_failed_import_changes_neither_objects_nor_the_configuration(given: dict[str, Any], want: int) -> None:
    async def test(fixture: ServerFixture) -> None:
        before = (await fixture.client.get("/api/v1/export")).json()
        body = {"nodes": [node("n2")], "schedulerConfig": {"percentageOfNodesToScore": 37}} | given
        answer = await fixture.client.post("/api/v1/import", content=json.dumps(body))
        assert (answer.status_code, answer.json()) == (want, {"message": HTTPStatus(want).phrase})
        assert (await fixture.client.get("/api/v1/export")).json() == before

    run(test, node("n1"))


def test_extender_requests_are_proxied() -> None:
    async def test(fixture: ServerFixture) -> None:
        asked: list[tuple[str, Any]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length")
            )
            asked.append((head.split()[1], json.loads(await reader.readexactly(length))))
            body = msgspec.json.encode([{"Host": "n1", "Score": 7}])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        extender = {"urlPrefix": f"http://127.0.0.1:{address[1]}/ext", "prioritizeVerb": "rank", "weight": 3}
        given = json.dumps({**CONFIGURATION, "extenders": [extender]})
        assert (await fixture.client.post("/api/v1/schedulerconfiguration", content=given)).status_code == 202
        arguments = {"Pod": {"metadata": {"name": "p"}}, "NodeNames": ["n1"]}
        answer = await fixture.client.post("/api/v1/extender/prioritize/0", content=json.dumps(arguments))
        # The extender's raw scores: the scheduler multiplies them by the weight.
        assert answer.json() == [{"Host": "n1", "Score": 7}]
        assert asked == [("/ext/rank", arguments)]
        for path in ("filter/0", "prioritize/1", "prioritize/x", "guess/0"):
            assert (await fixture.client.post(f"/api/v1/extender/{path}", content="{}")).status_code == 404
        server.close()
        await server.wait_closed()
        gone = await fixture.client.post("/api/v1/extender/prioritize/0", content="{}")
        assert (gone.status_code, gone.json()) == (500, {"message": "Internal Server Error"})

    run(test)


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/api/v1/export", True, id="an operation"),
        pytest.param("/api/v1/extender/filter/0", True, id="an extender's verb"),
        pytest.param("/api/v1/export/more", False, id="below an operation"),
        pytest.param("/api/v1/pods", False, id="a resource of Kubernetes"),
        pytest.param("/api/v1/namespaces/export", False, id="an object named like an operation"),
        pytest.param("/api/v1", False, id="the group itself"),
    ],
)
def test_operations_are_distinguished_from_the_kubernetes_api(path: str, want: bool) -> None:
    assert is_operation(path) == want
