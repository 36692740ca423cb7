"""The simulator as a server: pods are created and bound through the API, and failures stay where they occur."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from msgspec.structs import replace

from bayplan.apiserver.bridge.bridge import BridgeOptions
from bayplan.app.scheduler_setup import SchedulerOptions
from bayplan.app.simulator_server import TICK_SECONDS, SimulatorOptions
from bayplan.base.clock import Clock
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import ConfigurationError, EngineBusy, InputError, InvariantError, PluginError
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.extender.connections import ExtenderConnections
from tests.app.servers import FULL, Server, running

PLUGIN = """
import time
from bayplan import PerNodePlugin

class Unreliable(PerNodePlugin):
    def filter_node(self, pod, node):
        if pod.metadata.name.startswith("bad"):
            {what}
        return "node(s) don't please" if node.name == "{refused}" else None
"""
TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packer
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def play(scenario: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def with_plugin(tmp_path: Path, what: str = "pass", refused: str = "", **more: object) -> SimulatorOptions:
    path = tmp_path / "unreliable.py"
    path.write_text(PLUGIN.format(what=what, refused=refused))
    return replace(FULL, scheduler=SchedulerOptions(plugins=[f"{path}:Unreliable"]), **more)


def test_scheduling_writes_conditions_events_and_decisions() -> None:
    async def scenario() -> None:
        async with running() as server:
            await server.add_nodes("n1", "n2")
            await server.add_pod("p")
            await server.add_pod("big", cpu="50")
            await server.settle()
            pod, big = await server.pod("p"), await server.pod("big")
            assert pod["spec"]["nodeName"] in ("n1", "n2")
            assert {"type": "PodScheduled", "status": "True"}.items() <= pod["status"]["conditions"][0].items()
            (condition,) = big["status"]["conditions"]
            assert condition["reason"] == "Unschedulable"
            assert condition["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
            events = (await server.send("GET", "/apis/events.k8s.io/v1/events"))["items"]
            assert sorted((it["regarding"]["name"], it["reason"]) for it in events) == [
                ("big", "FailedScheduling"),
                ("p", "Scheduled"),
            ]
            decisions = server.simulator.decisions
            (number,) = decisions.numbers_of("default/p")
            assert decisions.decision(number).ties == ("n1", "n2")
            managers = [it["manager"] for it in big["metadata"]["managedFields"]]
            assert "kube-scheduler" in managers

    play(scenario())


def test_objects_created_before_the_start_are_scheduled() -> None:
    async def scenario() -> None:
        server = Server(FULL, Clock())
        await server.add_nodes("n1")
        await server.add_pod("there", nodeName="n1")
        await server.add_pod("waiting")
        server.simulator.start()
        await server.settle()
        assert await server.node_of("waiting") == "n1"
        assert server.simulator.engine.call(lambda scheduler: len(scheduler.state.pods)) == 2
        server.simulator.stop()

    play(scenario())


def test_each_profile_schedules_its_pods_and_ignores_other_schedulers(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(TWO_PROFILES)

    async def scenario() -> None:
        async with running(replace(FULL, scheduler=SchedulerOptions(config=path))) as server:
            await server.add_nodes("n1", "n2")
            await server.add_pod("first", cpu="2", schedulerName="packer")
            await server.settle()
            home = await server.node_of("first")
            await server.add_pod("packed", schedulerName="packer")
            await server.add_pod("theirs", schedulerName="outside")
            await server.settle()
            assert await server.node_of("packed") == home
            assert await server.node_of("theirs") == ""

    play(scenario())


def test_pods_stay_pending_without_a_scheduler_even_with_another_configuration() -> None:
    async def scenario() -> None:
        async with running(replace(FULL, schedules=False)) as server:
            await server.add_nodes("n1")
            await server.add_pod("p")
            await server.settle()
            assert await server.node_of("p") == ""
            await server.simulator.configure(TWO_PROFILES)
            await server.add_pod("packed", schedulerName="packer")
            await server.settle()
            assert [await server.node_of(name) for name in ("p", "packed")] == ["", ""]
            assert server.simulator.engine.status().decisions == 0

    play(scenario())


def test_a_refused_binding_is_undone_and_recorded_as_failed() -> None:
    async def scenario() -> None:
        async with running() as server:
            await server.add_nodes("n1")
            server.clock.pause()
            await server.add_pod("p")
            await server.settle()
            engine = server.simulator.engine
            # Another client binds the pod first: the loop cannot execute the decision before this request is answered.
            assert engine.step_decision().result(10)
            binding = {"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": "p"}}
            await server.send("POST", "/api/v1/namespaces/default/pods/p/binding", binding)
            await server.settle()
            assert engine.call(lambda scheduler: [it.message for it in scheduler.records]) == [
                "",
                'running Bind plugin "DefaultBinder": Operation cannot be fulfilled on pods/binding "p": '
                'pod p is already assigned to node "n1"',
            ]
            assert await server.node_of("p") == "n1"

            def look(scheduler: object) -> tuple[int, int]:
                return len(scheduler.assumed), len(scheduler.state.pods)  # type: ignore[attr-defined]

            assert engine.call(look) == (0, 1)

    play(scenario())


class TestConfiguration:
    def test_a_new_configuration_applies_immediately(self) -> None:
        async def scenario() -> None:
            async with running() as server:
                await server.add_nodes("n1", "n2")
                await server.add_pod("waits", schedulerName="packer")
                await server.settle()
                assert await server.node_of("waits") == ""
                await server.simulator.configure(TWO_PROFILES)
                await server.settle()
                assert await server.node_of("waits")
                assert server.simulator.setup.configuration_text == TWO_PROFILES
                assert [profile.scheduler_name for profile in server.simulator.setup.configuration.profiles] == [
                    "default-scheduler",
                    "packer",
                ]

        play(scenario())

    def test_a_refused_configuration_changes_nothing(self) -> None:
        async def scenario() -> None:
            async with running() as server:
                before = server.simulator.setup
                with pytest.raises(ConfigurationError, match="parallelism"):
                    await server.simulator.configure(TWO_PROFILES + "parallelism: -1\n")
                assert server.simulator.setup is before
                assert server.simulator.engine.generation == 0

        play(scenario())


class TestPlugins:
    def test_a_custom_plugin_is_recorded_like_a_built_in_plugin(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(with_plugin(tmp_path, refused="n1")) as server:
                await server.add_nodes("n1", "n2")
                await server.add_pod("p")
                await server.settle()
                decision = server.simulator.decisions.decision(0)
                assert decision.record.node == "n2"
                assert "Unreliable" in decision.filters
                status = decision.first_failure(decision.names.index("n1"))
                assert status is not None
                assert (status.plugin, status.reasons) == ("Unreliable", ("node(s) don't please",))

        play(scenario())

    def test_reload_reads_a_file_changed_within_the_same_second(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.dont_write_bytecode", False)

        async def scenario() -> None:
            async with running(with_plugin(tmp_path, refused="n1")) as server:
                await server.add_nodes("n1", "n2")
                for number, other in enumerate(("n2", "n1", "n2")):
                    # The new file has the same size, and its modification time is in the same second.
                    with_plugin(tmp_path, refused=other)
                    await server.simulator.reload_plugins()
                    await server.add_pod(f"p{number}")
                    await server.settle()
                    assert await server.node_of(f"p{number}") not in ("", other)

        play(scenario())

    def test_reload_applies_changed_files_and_keeps_working_plugins_on_an_error(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(with_plugin(tmp_path, refused="n1")) as server:
                await server.add_nodes("n1")
                await server.add_pod("p")
                await server.settle()
                assert await server.node_of("p") == ""
                with_plugin(tmp_path, refused="another")
                await server.simulator.reload_plugins()
                await server.settle()
                assert await server.node_of("p") == "n1"
                (tmp_path / "unreliable.py").write_text("def broken(:\n")
                with pytest.raises(PluginError, match="can't be imported"):
                    await server.simulator.reload_plugins()
                await server.add_pod("q")
                await server.settle()
                assert await server.node_of("q") == "n1"

        play(scenario())

    @pytest.mark.parametrize(
        ("what", "want"),
        [
            pytest.param("raise KeyError('zone')", "KeyError: 'zone' (unreliable.py:8)", id="a plugin that raises"),
            pytest.param(
                "time.sleep(3600)", "cut off after 1s at filter_node() (unreliable.py:8)", id="a plugin that sleeps"
            ),
            pytest.param(
                "while True: pass", "cut off after 1s at filter_node() (unreliable.py:8)", id="a plugin that loops"
            ),
        ],
    )
    def test_a_plugin_that_fails_or_hangs_fails_only_its_pod(self, tmp_path: Path, what: str, want: str) -> None:
        async def scenario() -> None:
            async with running(with_plugin(tmp_path, what, plugin_deadline_seconds=1.0)) as server:
                await server.add_nodes("n1", "n2")
                await server.add_pod("bad")
                await server.add_pod("good")
                numbers = server.simulator.decisions.numbers_of
                await server.until(lambda: len(numbers("default/bad")) > 0 and len(numbers("default/good")) > 0)
                await server.settle()
                record = server.simulator.decisions[numbers("default/bad")[0]]
                assert record.outcome is Outcome.ERROR
                assert record.message == f'running Filter plugin "Unreliable": {want}'
                condition = (await server.pod("bad"))["status"]["conditions"][0]
                assert (condition["reason"], condition["message"]) == ("SchedulerError", record.message)
                assert await server.node_of("good")
                (incident,) = [
                    it for it in server.simulator.engine.status().plugin_failures if it.plugin == "Unreliable"
                ][:1]
                assert "unreliable.py" in incident.traceback

        play(scenario())

    def test_reload_forgets_the_failures_of_the_replaced_plugins(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(with_plugin(tmp_path, "raise KeyError('zone')")) as server:
                await server.add_nodes("n1")
                await server.add_pod("bad")
                engine = server.simulator.engine
                await server.until(lambda: len(engine.status().plugin_failures) > 0)
                (tmp_path / "unreliable.py").write_text("def broken(:\n")
                with pytest.raises(PluginError):
                    await server.simulator.reload_plugins()
                assert engine.status().plugin_failures
                with_plugin(tmp_path, "pass")
                await server.simulator.reload_plugins()
                await server.settle()
                assert await server.node_of("bad") == "n1"
                assert not engine.status().plugin_failures
                assert engine.status().plugin_failure_counts["Unreliable"] > 0

        play(scenario())

    def test_the_api_responds_while_a_plugin_hangs(self, tmp_path: Path) -> None:
        released = tmp_path / "released"
        wait = f"while not __import__('pathlib').Path({str(released)!r}).exists(): time.sleep(0.01)"

        async def scenario() -> None:
            async with running(with_plugin(tmp_path, wait, plugin_deadline_seconds=3600.0)) as server:
                engine = server.simulator.engine
                await server.add_nodes("n1")
                await server.add_pod("bad")
                await server.until(lambda: engine.status().running_plugin is not None)
                await server.add_pod("good")
                assert [await server.node_of(name) for name in ("bad", "good")] == ["", ""]
                assert engine.status().running_plugin is not None
                released.touch()
                await server.settle()
                assert [await server.node_of(name) for name in ("bad", "good")] == ["n1", "n1"]

        play(scenario())

    def test_a_plugin_that_cannot_be_created_is_refused_at_startup(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.py"
        path.write_text(
            "from bayplan import PerNodePlugin\nclass Bad(PerNodePlugin):\n"
            "    def __init__(self, *arguments): raise OSError('no disk')\n"
            "    def filter_node(self, pod, node): return None\n"
        )
        with pytest.raises(PluginError, match=r"plugin Bad can't be created.*no disk"):
            Server(replace(FULL, scheduler=SchedulerOptions(plugins=[f"{path}:Bad"])), Clock())


class TestTime:
    def test_step_decision_executes_one_decision(self) -> None:
        async def scenario() -> None:
            clock = Clock(start_ns=1_800_000_000 * SECOND_NS, paused=True)
            async with running(clock=clock) as server:
                await server.add_nodes("n1")
                for name in ("a", "b"):
                    await server.add_pod(name)
                assert await server.simulator.step_decision()
                assert [bool(await server.node_of(name)) for name in ("a", "b")] == [True, False]
                assert await server.simulator.step_decision()
                assert await server.node_of("b")
                assert not await server.simulator.step_decision()
                assert clock.now_ns() == 1_800_000_000 * SECOND_NS

        play(scenario())

    def test_step_decision_advances_the_clock_to_the_next_attempt(self) -> None:
        async def scenario() -> None:
            clock = Clock(start_ns=1_800_000_000 * SECOND_NS, paused=True)
            async with running(clock=clock) as server:
                await server.add_nodes("n1")
                await server.add_pod("big", cpu="50")
                assert await server.simulator.step_decision()
                assert await server.simulator.step_decision()
                first, second = server.simulator.decisions.numbers_of("default/big")
                passed = server.simulator.decisions[second].time_ns - server.simulator.decisions[first].time_ns
                assert 300 * SECOND_NS <= passed < 400 * SECOND_NS

        play(scenario())

    def test_controllers_and_kubelet_use_the_simulated_clock(self) -> None:
        async def scenario() -> None:
            clock = Clock(start_ns=1_800_000_000 * SECOND_NS, paused=True)
            options = replace(FULL, bridge=BridgeOptions())
            async with running(options, clock) as server:
                await server.add_nodes("n1")
                container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
                spec = {"containers": [container], "restartPolicy": "Never"}
                job = {
                    "metadata": {"name": "j", "annotations": {}},
                    "spec": {"template": {"metadata": {"annotations": {"bayplan.io/run-time": "30m"}}, "spec": spec}},
                }
                await server.send("POST", "/apis/batch/v1/namespaces/default/jobs", job)
                for _ in range(30):
                    await server.simulator.step_event()
                    found = await server.send("GET", "/apis/batch/v1/namespaces/default/jobs/j")
                    if found["status"].get("succeeded"):
                        break
                assert found["status"]["succeeded"] == 1
                assert 30 * 60 <= clock.seconds() - 1_800_000_000 < 3 * 3600

        play(scenario())


class TestSnapshots:
    def test_restore_and_reset_also_restore_the_scheduler(self) -> None:
        async def scenario() -> None:
            async with running() as server:
                simulator = server.simulator
                await server.add_nodes("n1")
                await server.add_pod("a", cpu="3")
                await server.settle()
                simulator.take_snapshot("one pod")
                await server.send("DELETE", "/api/v1/namespaces/default/pods/a", {"gracePeriodSeconds": 0})
                await server.add_pod("b", cpu="3")
                await server.settle()
                assert await server.node_of("b") == "n1"
                simulator.restore_snapshot("one pod")
                await server.add_pod("c", cpu="2")
                await server.settle()
                assert (await server.node_of("a"), await server.node_of("c")) == ("n1", "")
                simulator.reset()
                await server.settle()
                assert (await server.send("GET", "/api/v1/nodes"))["items"] == []
                assert simulator.engine.call(lambda scheduler: (len(scheduler.state.nodes), len(scheduler.pods))) == (
                    0,
                    0,
                )

        play(scenario())

    def test_snapshot_names_are_unique_and_must_exist(self) -> None:
        async def scenario() -> None:
            async with running() as server:
                simulator = server.simulator
                simulator.take_snapshot("a")
                with pytest.raises(InputError, match="which already exists"):
                    simulator.take_snapshot("a")
                with pytest.raises(InputError, match="one of the existing snapshots: a"):
                    simulator.restore_snapshot("b")
                assert [it.name for it in simulator.snapshots()] == ["a"]
                simulator.delete_snapshot("a")
                assert simulator.snapshots() == ()

        play(scenario())


def test_stopping_leaves_no_threads_running() -> None:
    async def scenario() -> None:
        async with running(replace(FULL, record_level=RecordLevel.SUMMARY)) as server:
            await server.add_nodes("n1")
            await server.add_pod("p")
            await server.settle()

    before = {thread.name for thread in threading.enumerate()}
    play(scenario())
    assert {thread.name for thread in threading.enumerate()} - before <= {"asyncio_0", "bayplan-plugin"}


def test_a_failed_configuration_closes_old_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[ExtenderConnections] = []

    def busy(make: Callable[[], object]) -> None:
        raise EngineBusy("it takes its time")

    async def scenario() -> None:
        async with running() as server:
            simulator = server.simulator
            before = simulator.setup.connections
            monkeypatch.setattr(ExtenderConnections, "close", lambda it: closed.append(it))
            monkeypatch.setattr(simulator.engine, "replace", busy)
            with pytest.raises(EngineBusy):
                await simulator.configure("")
            await server.until(lambda: bool(closed))
            assert closed == [before]

    play(scenario())


def test_periodic_tasks_end_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []

    async def scenario() -> None:
        async with running() as server:
            monkeypatch.setattr(server.simulator.action_loop.executor, "tick", lambda: calls.append(None))
            await server.until(lambda: bool(calls))
        made = len(calls)
        await asyncio.sleep(2 * TICK_SECONDS)
        assert len(calls) == made

    play(scenario())


def test_an_exception_in_a_periodic_task_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise InvariantError("not now")

    async def scenario() -> None:
        async with running() as server:
            monkeypatch.setattr(server.simulator.action_loop.executor, "tick", broken)
            await server.until(lambda: [*server.simulator.bridge.bugs()] == ["ticker"])

    # All tests with such a server fail in this case.
    with pytest.raises(AssertionError):
        play(scenario())
