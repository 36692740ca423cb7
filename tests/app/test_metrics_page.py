"""A simulator serves its scheduler's metrics on the port of its API."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest

from bayplan.app.metrics_page import MetricsPage
from tests.app.servers import running


def ask(page: MetricsPage, **headers: str) -> Any:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(page),
        base_url="http://127.0.0.1",
        headers=headers,
    )


def test_metrics_count_attempts_queue_moves_and_events() -> None:
    async def scenario() -> str:
        async with running() as server:
            await server.add_nodes("n1")
            for number in range(3):
                await server.add_pod(f"p{number}")
            await server.add_pod("large", cpu="64")
            await server.settle()
            async with ask(MetricsPage(server.simulator.metrics)) as client:
                answer = await client.get("/metrics")
            assert answer.headers["content-type"].startswith("text/plain")
            return str(answer.text)

    text = asyncio.run(asyncio.wait_for(scenario(), 60))
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines['scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}']) == 3
    assert float(lines['scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"}']) == 1
    assert float(lines['scheduler_pending_pods{queue="unschedulable"}']) == 1
    assert float(lines['scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"}']) == 4
    assert float(lines['scheduler_event_handling_duration_seconds_count{event="UnschedulablePodAdd"}']) == 4
    assert float(lines['scheduler_event_handling_duration_seconds_count{event="AssignedPodAdd"}']) == 3
    assert re.search(r'^kubernetes_build_info\{.*git_version="v1\.36\.3"', text, re.MULTILINE)


@pytest.mark.parametrize(
    ("method", "headers", "want"),
    [
        pytest.param("GET", {"authorization": "Bearer secret"}, 200, id="a client with the token is answered"),
        pytest.param("GET", {}, 401, id="a client without it is not"),
        pytest.param("POST", {"authorization": "Bearer secret"}, 405, id="metrics are read-only"),
    ],
)
def test_metrics_require_the_token_and_a_get_request(method: str, headers: dict[str, str], want: int) -> None:
    async def scenario() -> int:
        async with running() as server, ask(MetricsPage(server.simulator.metrics, token="secret"), **headers) as client:
            return int((await client.request(method, "/metrics")).status_code)

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) == want
