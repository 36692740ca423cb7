"""The page's types agree with the server's structs, and so does the fake service of the page's tests."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import msgspec
import pytest

from bayplan.http_api.operations import OPERATIONS, ROOT, TOPICS
from tests.http_api.contract_check import check_frame, operation_of
from tests.ui.fake_cluster import FakeCluster
from tests.ui.fake_service import FakeService

FOLDER = Path(__file__).resolve().parents[2]
STATIC = FOLDER / "src" / "bayplan" / "ui" / "static"


def test_generated_types_and_openapi_document_are_current() -> None:
    command = [sys.executable, str(FOLDER / "scripts" / "make_page_types.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_lock_file_has_digests_and_no_urls() -> None:
    lock = json.loads((FOLDER / "scripts" / "page" / "package-lock.json").read_text(encoding="utf-8"))
    assert "://" not in json.dumps(lock)
    packages = {name: facts for name, facts in lock["packages"].items() if name}
    assert [name for name, facts in packages.items() if "integrity" not in facts or "resolved" in facts] == []
    assert {"node_modules/typescript", "node_modules/eslint"} <= packages.keys()


def test_the_page_only_requests_documented_operations() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in STATIC.rglob("*.js"))
    asked = {("GET", path) for path in re.findall(r'\b(?:get|apiAddress)\(\s*"(/[^"]*)"', source)}
    asked |= {(method, path) for method, path in re.findall(r'\bput\(\s*"([A-Z]+) (/[^"]*)"', source)}
    assert len(asked) > 25
    assert asked <= {(each.method, each.path) for each in OPERATIONS}
    assert re.findall(r'\bsend\(\s*[`"]/bayplan', source) == [], (
        "our own API is asked through get and put, which have types"
    )


QUERIES = {
    "/nodes": "?blocks=1&facets=1&limit=60",
    "/pods": "?facets=1&status=waiting",
    "/queue": "?tier=backoff",
    "/decisions/density": "?bins=50",
    "/unblock": "?workload=pod/default/a",
    "/capacity": "?workload=pod/default/a",
}
NOT_MADE_UP = {
    "/compare",
    "/explain",
    "/export",
    "/forks/{id}",
    "/placements",
    "/pods/{namespace}/{name}/attempts",
    "/pods/{namespace}/{name}/explanation",
    "/config/default",
    "/what-if/{id}",
}
"""Operations that no test of the page asks the made-up service for."""


@pytest.mark.parametrize("status", ["placed", "waiting", "gated"])
def test_responses_of_the_fake_service_match_the_contract(status: str) -> None:
    cluster = FakeCluster(10, 60)
    pod = next(each for each in cluster.pods if each.status == status)
    names = {"namespace": pod.namespace, "attempt": "latest"}

    async def test() -> None:
        transport = httpx.ASGITransport(app=FakeService(cluster))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for operation in OPERATIONS:
                if operation.method != "GET" or operation.path in NOT_MADE_UP:
                    continue
                name = cluster.nodes[0].name if operation.path.startswith("/nodes/") else pod.name
                path = operation.path.format(**names, name=name)
                # The service raises an error if an answer is not in the contract.
                answer = await client.get(f"{ROOT}{path}{QUERIES.get(operation.path, '')}")
                assert answer.status_code == 200, path
                assert operation_of("GET", f"{ROOT}{path}") is operation

    asyncio.run(test())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/config/validate", "profiles: []", id="a valid configuration"),
        pytest.param("/config/validate", "- name: NodeResourceFit", id="an invalid configuration"),
        pytest.param("/apply", '{"text": "a", "count": 3}', id="objects"),
        pytest.param("/apply", '{"text": "refuse me"}', id="objects that are refused"),
        pytest.param("/what-if", '{"changes": ["drain=a"]}', id="a what-if"),
    ],
)
def test_responses_to_writes_of_the_fake_service_match_the_contract(path: str, body: str) -> None:
    async def test() -> None:
        transport = httpx.ASGITransport(app=FakeService(FakeCluster(10, 60)))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            assert (await client.post(f"{ROOT}{path}", content=body)).status_code == 200

    asyncio.run(test())


def test_frames_of_the_fake_service_match_the_contract() -> None:
    service = FakeService(FakeCluster(10, 60), changes=10)
    for topic in TOPICS:
        name = topic.format(metric="cpu", namespace="default", name="a")
        check_frame(name, msgspec.json.decode(msgspec.json.encode(service._data(name, {0, 1}))))
