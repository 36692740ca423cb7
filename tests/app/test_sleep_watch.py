"""A machine that sleeps: the clock advances, timers stop, and everything that became due is done when it wakes up."""

from __future__ import annotations

import asyncio
import time

import pytest

from bayplan.app.sleep_watch import catch_up_after_sleep, watch_for_sleep
from bayplan.base.clock import Clock
from bayplan.base.durations import SECOND_NS
from tests.http_api.server_fixture import ServerFixture, node, pod, run


class Machine:
    """A machine that can sleep: one of its clocks advances then, the other stands still."""

    def __init__(self) -> None:
        self.asleep_ns = 0

    def steady(self) -> int:
        return time.monotonic_ns() + self.asleep_ns

    def sleep(self, seconds: float) -> None:
        self.asleep_ns += int(seconds * SECOND_NS)

    def clock(self) -> Clock:
        return Clock(steady=self.steady)


def test_a_sleep_is_logged_once_and_notifies_listeners(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock, called = machine.clock(), list[int]()
    clock.on_change(lambda: called.append(clock.now_ns()))
    assert not catch_up_after_sleep(clock)
    before = clock.now_ns()
    machine.sleep(3600)
    assert catch_up_after_sleep(clock)
    assert not catch_up_after_sleep(clock)
    assert len(called) == 1
    assert called[0] >= before + 3600 * SECOND_NS
    assert [record.getMessage() for record in caplog.records] == ["the machine slept for 3600 s; overdue work runs now"]


def test_a_short_pause_is_not_a_sleep(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.sleep(0.5)
    assert not catch_up_after_sleep(clock)
    assert caplog.text == ""


def test_real_clocks_detect_no_sleep_on_an_awake_machine() -> None:
    assert not catch_up_after_sleep(Clock())


def test_the_watch_detects_each_sleep_until_it_is_cancelled() -> None:
    machine = Machine()
    clock, called = machine.clock(), list[int]()
    clock.on_change(lambda: called.append(1))

    async def watch() -> None:
        task = asyncio.create_task(watch_for_sleep(clock, 0.01))
        for sleeps in (1, 2):
            machine.sleep(60)
            while len(called) < sleeps:
                await asyncio.sleep(0.005)
        task.cancel()

    asyncio.run(asyncio.wait_for(watch(), 30))
    assert len(called) == 2


def test_a_pod_whose_run_time_passes_during_sleep_succeeds() -> None:
    machine = Machine()
    running = pod("job", restartPolicy="Never")
    running["metadata"]["annotations"] = {"bayplan.io/run-time": "30m"}

    async def test(fixture: ServerFixture) -> None:
        path = "/api/v1/namespaces/default/pods/job"
        while (await fixture.api("GET", path)).get("status", {}).get("phase") != "Running":
            await asyncio.sleep(0.02)
        machine.sleep(3600)
        deadline = time.monotonic() + 30
        while (await fixture.api("GET", path))["status"]["phase"] != "Succeeded":
            assert time.monotonic() < deadline, "the pod did not end"
            await asyncio.sleep(0.05)

    run(test, node("n1"), running, clock=machine.clock())


CRON_JOB = {
    "metadata": {"name": "report"},
    "spec": {
        "schedule": "*/30 * * * *",
        "jobTemplate": {"spec": {"template": {"spec": {**pod("x")["spec"], "restartPolicy": "Never"}}}},
    },
}


def test_a_cron_job_due_during_sleep_creates_its_job() -> None:
    machine = Machine()

    async def test(fixture: ServerFixture) -> None:
        # Without nodes, the kubelet writes nothing in this time, so that no event wakes the controllers.
        await fixture.api("POST", "/apis/batch/v1/namespaces/default/cronjobs", CRON_JOB)
        await fixture.settle()
        machine.sleep(3600)
        deadline = time.monotonic() + 30
        while not (await fixture.api("GET", "/apis/batch/v1/namespaces/default/jobs"))["items"]:
            assert time.monotonic() < deadline, "there is no job"
            await asyncio.sleep(0.05)

    run(test, clock=machine.clock())
