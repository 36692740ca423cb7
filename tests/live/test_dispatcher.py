"""Tests of the dispatcher: order and concurrency of requests, failures reported to the engine, and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import pytest

from bayplan.client import action_executor as module
from bayplan.client.connection import ApiConnection
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.engine.actions import Action, Bind, Emit, Evict, SetCondition
from bayplan.live.dispatcher import Dispatcher
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.pod import Pod

T = TypeVar("T", bound=KubernetesObject)


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="n", uid=name))


class Server:
    """Answers on request, and records the requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.free = asyncio.Event()
        self.status = 201

    async def send(self, request: ApiRequest) -> ApiResponse:
        self.asked.append(f"{request.method} {request.path.rpartition('/namespaces/n/')[2]}")
        await self.free.wait()
        return ApiResponse(self.status, b'{"message": "no"}')


class Engine:
    def __init__(self) -> None:
        self.failed: list[str] = []
        self.generations: list[int | None] = []
        self.generation = 3

    def binding_failed(
        self, pod: Pod, message: str, *, plugin: str = "", point: str = "", generation: int | None = None
    ) -> None:
        self.failed.append(f"{pod.key} {point} {plugin}: {message}")
        self.generations.append(generation)

    def binding_written(self, pod: Pod, *, generation: int | None = None) -> None:
        pass

    def preemption_failed(self, pod: Pod, *, generation: int | None = None) -> None:
        self.failed.append(f"{pod.key} preempts")
        self.generations.append(generation)


class Nothing:
    def get(self, kind: type[T], key: str) -> T | None:
        return None


def dispatched(
    actions: Sequence[Action], check: Callable[[Server, Server, Engine, Dispatcher], None], *, status: int = 201
) -> tuple[Server, Server, Engine, Dispatcher]:
    """Execute actions; call `check` before any request is answered, then answer all of them."""

    async def run() -> tuple[Server, Server, Engine, Dispatcher]:
        server, events, engine = Server(), Server(), Engine()
        server.status = status
        dispatcher = Dispatcher(
            cast("ApiConnection", server),
            cast("ApiConnection", events),
            Nothing(),
            host_name="host",
            now_ns=lambda: 10**18,
        )
        dispatcher.connect(engine)
        await asyncio.to_thread(dispatcher.submit, actions)
        await asyncio.sleep(0.05)
        check(server, events, engine, dispatcher)
        server.free.set()
        events.free.set()
        await dispatcher.drain(5)
        return server, events, engine, dispatcher

    return asyncio.run(run())


def test_requests_are_concurrent_across_pods_and_sequential_per_pod() -> None:
    a, b = pod("a"), pod("b")

    def check(server: Server, events: Server, engine: Engine, dispatcher: Dispatcher) -> None:
        assert server.asked == ["PATCH pods/a/status", "POST pods/b/binding"]

    actions: list[Action] = [SetCondition(a, "Unschedulable", "no room"), Bind(b, "n1"), Bind(a, "n1")]
    server, _, engine, _ = dispatched(actions, check)
    assert server.asked[2:] == ["POST pods/a/binding"]
    assert engine.failed == []


def test_a_refused_binding_is_reported_as_failed() -> None:
    _, _, engine, _ = dispatched([Bind(pod("a"), "n1")], lambda *_: None, status=409)
    assert engine.failed == ["n/a Bind DefaultBinder: no"]


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param(403, ["POST /api/v1/namespaces/n/pods/a/binding: no"], id="a rejection is logged once a minute"),
        pytest.param(409, [], id="a conflict is not logged"),
    ],
)
def test_rejected_requests_are_logged(status: int, want: list[str], caplog: pytest.LogCaptureFixture) -> None:
    dispatched([Bind(pod("a"), "n1"), Bind(pod("b"), "n1")], lambda *_: None, status=status)
    assert caplog.messages == want


def test_a_bug_while_sending_a_binding_is_reported_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Dispatcher, "send", broken)
    a = pod("a")
    _, _, engine, _ = dispatched([SetCondition(a, "Unschedulable", "no room"), Bind(a, "n1")], lambda *_: None)
    assert engine.failed == ["n/a Bind DefaultBinder: internal error"]


def test_a_refusal_is_reported_to_the_requesting_generation() -> None:
    def check(server: Server, events: Server, engine: Engine, dispatcher: Dispatcher) -> None:
        engine.generation = 4

    _, _, engine, _ = dispatched([Bind(pod("a"), "n1"), Evict(pod("b"), pod("c"), "n1")], check, status=409)
    assert engine.failed == ["n/a Bind DefaultBinder: no", "n/c preempts"]
    assert engine.generations == [3, 3]


def test_a_bug_while_preparing_a_binding_is_reported_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(module, "exchanges_of", broken)
    a = pod("a")
    actions: list[Action] = [SetCondition(pod("b"), "Unschedulable", "no room"), Bind(a, "n1")]
    _, _, engine, _ = dispatched(actions, lambda *_: None)
    assert engine.failed == ["n/a Bind DefaultBinder: internal error"]


def test_events_use_a_separate_connection_with_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EVENTS", 3)

    def check(server: Server, events: Server, engine: Engine, dispatcher: Dispatcher) -> None:
        assert server.asked == []
        assert len(events.asked) == 3
        assert dispatcher.executor.dropped_events == 2

    events = [Emit(pod(f"p{number}"), "Normal", "Scheduled", "Binding", "note") for number in range(5)]
    dispatched(events, check)


def test_drain_stops_at_its_deadline_and_later_actions_are_ignored() -> None:
    async def run() -> float:
        server = Server()
        connection = cast("ApiConnection", server)
        dispatcher = Dispatcher(connection, connection, Nothing(), host_name="host", now_ns=lambda: 0)
        dispatcher.connect(Engine())
        dispatcher.submit([Bind(pod("a"), "n1")])
        await asyncio.sleep(0.05)
        began = asyncio.get_running_loop().time()
        await dispatcher.drain(0.2)
        dispatcher.submit([Bind(pod("b"), "n1")])
        await asyncio.sleep(0.05)
        assert server.asked == ["POST pods/a/binding"]
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(run()) < 2


def test_drain_waits_for_confirmations_of_bindings_and_their_events() -> None:
    async def run() -> None:
        server, events = Server(), Server()
        events.free.set()
        dispatcher = Dispatcher(
            cast("ApiConnection", server),
            cast("ApiConnection", events),
            Nothing(),
            host_name="host",
            now_ns=lambda: 10**18,
        )
        dispatcher.connect(Engine())
        answers = iter((True, True, False))

        def is_binding() -> bool:
            answer = next(answers)
            if not answer:
                dispatcher.submit([Emit(pod("a"), "Normal", "Scheduled", "Binding", "note")])
            return answer

        await dispatcher.drain(5, lambda: is_binding() if not events.asked else False)
        assert [request.partition(" ")[0] for request in events.asked] == ["POST"]

    asyncio.run(run())
