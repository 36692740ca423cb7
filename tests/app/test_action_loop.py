"""Actions of the scheduler, executed in process: in order, in slices, with failures reported back."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine

import pytest

from bayplan.app import action_loop
from bayplan.base.clock import Clock
from bayplan.client import action_executor
from bayplan.engine.actions import Bind, Emit, SetCondition
from bayplan.objects.pod import Pod
from tests.app.servers import Server, running


def play(scenario: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


async def pod_of(server: Server, name: str) -> Pod:
    await server.add_pod(name, schedulerName="outside")
    await server.settle()
    pod = server.simulator.bridge.store.get(Pod, f"default/{name}")
    assert pod is not None
    return pod


def test_actions_of_one_pod_are_executed_in_order() -> None:
    async def scenario() -> None:
        async with running() as server:
            await server.add_nodes("n1")
            pod = await pod_of(server, "p")
            server.simulator.action_loop.submit([SetCondition(pod, "Unschedulable", "no room"), Bind(pod, "n1")])
            await server.settle()
            found = await server.pod("p")
            assert found["spec"]["nodeName"] == "n1"
            assert [(it["type"], it["status"]) for it in found["status"]["conditions"]] == [("PodScheduled", "True")]

    play(scenario())


def test_api_requests_are_handled_between_slices_of_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_loop, "SLICE_SECONDS", 0.0)

    async def scenario() -> None:
        async with running() as server:
            await server.add_nodes("n1")
            pods = [await pod_of(server, f"p{number}") for number in range(5)]
            server.simulator.action_loop.submit([Bind(pod, "n1") for pod in pods])
            bound = []
            while not server.simulator.action_loop.is_idle:
                await asyncio.sleep(0)
                found = await server.send("GET", "/api/v1/pods")
                bound.append(sum(bool(pod["spec"].get("nodeName")) for pod in found["items"]))
            assert {*bound} >= {1, 2, 3, 4, 5}

    play(scenario())


def test_events_above_the_limit_are_dropped_and_bindings_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(action_executor, "MAX_EVENTS", 2)

    async def scenario() -> None:
        async with running() as server:
            await server.add_nodes("n1")
            pod = await pod_of(server, "p")
            notes = [Emit(pod, "Warning", f"Reason{number}", "Testing", "a note") for number in range(4)]
            server.simulator.action_loop.submit([*notes, Bind(pod, "n1")])
            await server.settle()
            events = (await server.send("GET", "/apis/events.k8s.io/v1/events"))["items"]
            assert [event["reason"] for event in events if event["regarding"]["name"] == "p"] == ["Reason0", "Reason1"]
            assert server.simulator.action_loop.executor.dropped_events == 2
            assert await server.node_of("p") == "n1"

    play(scenario())


def test_a_bug_in_action_execution_fails_the_binding_and_retries_the_pod(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    async def scenario() -> None:
        async with running(clock=Clock(paused=True)) as server:
            await server.add_nodes("n1")
            await server.add_pod("p")
            monkeypatch.setattr(action_executor, "exchanges_of", broken)
            assert await server.simulator.step_decision()
            decisions = server.simulator.decisions
            assert [decisions[number].message for number in decisions.numbers_of("default/p")] == [
                "",
                'running Bind plugin "DefaultBinder": internal error',
            ]
            monkeypatch.undo()
            assert server.simulator.action_loop.executor.failures
            assert await server.simulator.step_decision()
            assert await server.node_of("p") == "n1"

    with caplog.at_level(logging.CRITICAL):
        play(scenario())


def test_status_updates_are_owned_by_kube_scheduler() -> None:
    async def scenario() -> None:
        async with running() as server:
            await server.add_pod("big", cpu="1000")
            await server.add_nodes("n1")
            await server.settle()
            found = await server.pod("big")
            (entry,) = [it for it in found["metadata"]["managedFields"] if it["manager"] == "kube-scheduler"]
            assert entry["subresource"] == "status"
            assert 'k:{"type":"PodScheduled"}' in json.dumps(entry["fieldsV1"]).replace("\\", "")

    play(scenario())
