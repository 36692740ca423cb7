"""The driver: work runs on the loop, timers fire, and while the clock is paused only due work runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from bayplan.apiserver.bridge import bridge as bridge_module
from bayplan.apiserver.bridge.bridge import Bridge, BridgeOptions
from bayplan.apiserver.bridge.driver import BridgeDriver
from bayplan.apiserver.bridge.housekeeping import Leases
from bayplan.apiserver.bridge.quota_controller import QuotaController
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.store.item import Write
from bayplan.apiserver.store.store import Store
from bayplan.base.clock import Clock
from bayplan.base.errors import InvariantError
from bayplan.cluster.store import ChangeEvent
from tests.apiserver.bridge.bridge_fixture import APPS, workload
from tests.apiserver.client import PODS, Document

NODE: Document = {"metadata": {"name": "n"}}
POD: Document = {
    "metadata": {"name": "p", "annotations": {"bayplan.io/run-time": "60s"}},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
}


class Driven:
    """An API with a bridge that runs on the loop."""

    def __init__(self, clock: Clock) -> None:
        self.backend = Backend(Store(), clock=clock.seconds)
        bootstrap(self.backend)
        self.api = Api(self.backend)
        self.bridge = Bridge(self.backend, seed=1, options=BridgeOptions())
        self.driver = BridgeDriver(self.bridge, clock)

    async def post(self, path: str, document: Document) -> None:
        request = Request(
            "POST", path, headers={"content-type": "application/json"}, body=msgspec.json.encode(document)
        )
        answer = await self.api.handle(request)
        assert isinstance(answer, Response)
        assert answer.status == 201, answer.body

    async def until_idle(self) -> None:
        while not self.driver.is_idle:
            await asyncio.sleep(0)
        self.bridge.check()

    def phase(self) -> str:
        return self.bridge.store.pods["default/p"].status.phase


def drive(clock: Clock, steps: Callable[[Driven], Awaitable[None]], *, bugs: Sequence[str] = ()) -> None:
    async def main() -> None:
        driven = Driven(clock)
        driven.driver.start()
        try:
            await steps(driven)
        finally:
            driven.driver.stop()
        assert [*driven.bridge.bugs()] == [*bugs]

    asyncio.run(main())


def test_requests_are_answered_while_a_large_replica_set_scales_up() -> None:
    async def steps(driven: Driven) -> None:
        await driven.post(f"{APPS}/replicasets", workload("ReplicaSet", "many", {"replicas": 300}))
        seen = []
        while not driven.driver.is_idle:
            answer = await driven.api.handle(Request("GET", PODS))
            assert isinstance(answer, Response)
            seen.append(len(msgspec.json.decode(answer.body)["items"]))
            await asyncio.sleep(0)
        assert seen == sorted(seen)
        assert len(set(seen)) > 5
        assert len(driven.bridge.store.pods) == 300

    drive(Clock(), steps)


def test_an_exception_of_a_controller_at_a_write_affects_neither_others_nor_the_client(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def follow(self: QuotaController, write: Write, now_ns: int) -> None:
        if write.new.name == "n":
            raise RuntimeError("not now")

    async def steps(driven: Driven) -> None:
        monkeypatch.setattr(QuotaController, "follow", follow)
        await driven.post("/api/v1/nodes", NODE)
        await driven.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
        await driven.until_idle()
        assert driven.backend.store.get("serviceaccounts", ("a", "default")) is not None

    drive(Clock(), steps, bugs=["QuotaController nodes"])
    assert {each.getMessage() for each in caplog.records} == {"controller QuotaController nodes"}


def test_maintenance_continues_after_an_exception_of_one_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    renewals: list[int] = []

    def fail(*_: object) -> None:
        raise RuntimeError("not now")

    def renew(self: Leases, now_ns: int, limit: int) -> int:
        renewals.append(now_ns)
        return limit

    async def steps(driven: Driven) -> None:
        monkeypatch.setattr(bridge_module, "publish_api_server", fail)
        monkeypatch.setattr(Leases, "renew", renew)
        async with asyncio.timeout(10):
            while len(renewals) < 3:
                await asyncio.sleep(0.01)

    drive(Clock(), steps, bugs=["maintenance of the API's Service"])
    assert {each.getMessage() for each in caplog.records} == {"maintenance of the API's Service failed"}


def test_an_exception_of_a_listener_to_the_store_is_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> None:
        raise InvariantError("not now")

    async def steps(driven: Driven) -> None:
        driven.backend.store.listen("nodes", broken, broken)
        await driven.post("/api/v1/nodes", NODE)

    drive(Clock(), steps, bugs=["listener to nodes", "listener after a gap"])
    assert [each.getMessage() for each in caplog.records] == [
        "a listener to nodes failed",
        "a listener failed to handle a gap",
    ]


def test_listeners_are_notified_by_the_event_loop() -> None:
    async def steps(driven: Driven) -> None:
        reported: list[str] = []
        driven.bridge.listen(lambda events: reported.extend(event.object.metadata.name for event in events))
        await driven.post("/api/v1/nodes", NODE)
        await driven.until_idle()
        assert "n" in reported

    drive(Clock(), steps)


def test_a_listener_exception_affects_neither_other_listeners_nor_the_cluster(caplog: pytest.LogCaptureFixture) -> None:
    seen = list[str]()

    async def steps(driven: Driven) -> None:
        failures = [RuntimeError("not now")]

        def listen(events: Sequence[ChangeEvent]) -> None:
            if failures and any(event.object.metadata.name == "n" for event in events):
                raise failures.pop()

        driven.bridge.listen(listen)
        driven.bridge.listen(lambda events: seen.extend(event.object.metadata.name for event in events))
        await driven.post("/api/v1/nodes", NODE)
        await driven.post(PODS, POD)
        async with asyncio.timeout(10):
            while driven.phase() != "Running":
                await asyncio.sleep(0.01)
        assert not failures

    drive(Clock(), steps, bugs=["listener not now"])
    assert "RuntimeError: not now" in caplog.text
    assert {"n", "p"} <= set(seen)


def test_a_paused_clock_runs_only_due_work() -> None:
    clock = Clock(start_ns=1_767_225_600_000_000_000, paused=True)

    async def steps(driven: Driven) -> None:
        await driven.post("/api/v1/nodes", NODE)
        await driven.post(PODS, POD)
        await driven.until_idle()
        assert driven.phase() == "Running"
        wakeup = driven.bridge.next_wakeup()
        assert wakeup is not None
        assert wakeup == 1_767_225_660_000_000_000
        clock.jump(wakeup - 1000)
        await asyncio.sleep(0.01)
        await driven.until_idle()
        assert driven.phase() == "Running"
        clock.jump(wakeup)
        await asyncio.sleep(0.01)
        await driven.until_idle()
        assert driven.phase() == "Succeeded"

    drive(clock, steps)


def test_a_fast_clock_finishes_a_one_minute_pod_within_seconds() -> None:
    async def steps(driven: Driven) -> None:
        await driven.post("/api/v1/nodes", NODE)
        await driven.post(PODS, POD)
        async with asyncio.timeout(10):
            while "default/p" not in driven.bridge.store.pods or driven.phase() != "Succeeded":
                await asyncio.sleep(0.001)

    drive(Clock(speed=10_000.0), steps)
