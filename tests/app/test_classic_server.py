"""The classic scheduler in a server: its options, its queue, its Policy, and custom plugins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from bayplan.app.classic_setup import CLASSIC_QUEUES
from bayplan.app.mode import Mode
from bayplan.app.scheduler_setup import SchedulerOptions
from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.app.simulator_server import SimulatorOptions
from bayplan.base.errors import BayplanError, ConfigurationError
from bayplan.classic.queue import ClassicQueue
from bayplan.engine.records import Outcome
from bayplan.live.instrumented_queue import InstrumentedQueue, Origin
from tests.app.servers import FULL, Server, running
from tests.app.test_simulator_server import play

PLUGIN = """
from bayplan import PerNodePlugin

class Unreliable(PerNodePlugin):
    def filter_node(self, pod, node):
        if pod.metadata.name == "bad":
            raise RuntimeError("no")
        return "node(s) don't please" if node.name == "n1" else None

    def score_node(self, pod, node):
        return 11 if pod.metadata.name == "wide" else 10 * (node.name == "n3")
"""
GATE = """
from bayplan.framework.plugin import PreEnqueuePlugin

class Gate(PreEnqueuePlugin):
    name = "Gate"

    def pre_enqueue(self, pod):
        return None
"""
PACKING = """kind: Policy
apiVersion: v1
priorities:
- {name: MostRequestedPriority, weight: 1}
"""


def options(plugins: Sequence[str] = (), **more: object) -> SimulatorOptions:
    scheduler = replace(SchedulerOptions(mode=Mode.CLASSIC, plugins=plugins), **more)
    return replace(FULL, scheduler=scheduler)


def messages(server: Server, name: str) -> list[str]:
    decisions = server.simulator.decisions
    return [decisions[number].message for number in decisions.numbers_of(f"default/{name}")]


def test_predicates_and_priorities_schedule_a_pod() -> None:
    async def scenario() -> None:
        async with running(options()) as server:
            await server.add_nodes("n1", "n2")
            await server.add_pod("p")
            await server.simulator.settle()
            decision = server.simulator.decisions.decision(0)
            assert decision.record.outcome is Outcome.SCHEDULED
            assert "GeneralPredicates" in decision.filters
            assert "LeastRequestedPriority" in decision.scorers
            assert (await server.pod("p"))["spec"]["nodeName"] == decision.record.node

    play(scenario())


def test_a_pending_pod_has_the_1_16_message_and_is_retried_after_a_node_add() -> None:
    async def scenario() -> None:
        async with running(options()) as server:
            await server.add_nodes("n1")
            await server.add_pod("big", cpu="6")
            await server.simulator.settle()
            assert messages(server, "big") == ["0/1 nodes are available: 1 Insufficient cpu."]
            await server.add_nodes("n2", cpu="8")
            server.clock.jump(server.clock.now_ns() + 2_000_000_000)
            await server.simulator.settle()
            assert (await server.pod("big"))["spec"]["nodeName"] == "n2"
            number = server.simulator.decisions.numbers_of("default/big")[-1]
            origin = server.simulator.decisions.origin(number)
            assert origin is not None
            assert origin.woken_by != Origin("UnschedulablePodAdd", "active").woken_by

    play(scenario())


def test_a_new_policy_applies_immediately_and_an_invalid_one_is_refused() -> None:
    async def scenario() -> None:
        async with running(options()) as server:
            await server.add_nodes("n1", "n2")
            await server.add_pod("first")
            await server.simulator.settle()
            await server.simulator.configure(PACKING)
            await server.add_pod("second")
            await server.simulator.settle()
            pods = [await server.pod(name) for name in ("first", "second")]
            assert pods[0]["spec"]["nodeName"] == pods[1]["spec"]["nodeName"]
            with pytest.raises(ConfigurationError, match="Priority type not found for Nope"):
                await server.simulator.configure(PACKING.replace("MostRequestedPriority", "Nope"))
            with pytest.raises(ConfigurationError, match='no kind "Other" is registered'):
                await server.simulator.configure("kind: Other\napiVersion: v1\n")

    play(scenario())


def test_custom_plugins_run_in_addition_to_predicates_and_priorities(tmp_path: Path) -> None:
    path = tmp_path / "unreliable.py"
    path.write_text(PLUGIN)

    async def scenario() -> None:
        async with running(options([f"{path}:Unreliable=3"])) as server:
            await server.add_nodes("n1", "n2", "n3")
            for name in ("p", "bad", "wide"):
                await server.add_pod(name)
                await server.simulator.settle()
            await server.add_pod("big", cpu="6")
            await server.simulator.settle()
            assert (await server.pod("p"))["spec"]["nodeName"] == "n3"
            assert messages(server, "bad") == ['running Filter plugin "Unreliable": RuntimeError: no (unreliable.py:7)']
            invalid = 'score plugin "Unreliable" returns an invalid score 11, it should in the range of [0, 10]'
            assert messages(server, "wide") == [
                f'error while applying score weights for pod "wide": {invalid} after normalizing'
            ]
            # Filters of plugins run regardless of the predicates' results.
            assert messages(server, "big") == ["0/3 nodes are available: 1 node(s) don't please, 3 Insufficient cpu."]

    play(scenario())


def test_an_extension_point_missing_in_1_16_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gate.py"
    path.write_text(GATE)
    wanted = "plugin Gate in classic mode: expected one of pre_filter, .*got extension point pre_enqueue"
    cluster = tmp_path / "node.yaml"
    cluster.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    with pytest.raises(BayplanError, match=wanted):
        simulate(SimulationOptions(paths=[str(cluster)], mode=Mode.CLASSIC, plugins=[f"{path}:Gate"]))


def test_each_host_queue_has_a_classic_counterpart() -> None:
    assert all(issubclass(kind, ClassicQueue) for kind in CLASSIC_QUEUES.values())
    assert issubclass(CLASSIC_QUEUES[InstrumentedQueue], InstrumentedQueue)


def test_simulation_timeline_shows_moves_of_the_classic_queue(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '1', memory: 1Gi, pods: '9'}}\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: q}\n"
        "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]}\n"
    )
    result = simulate(SimulationOptions(paths=[str(cluster)], mode=Mode.CLASSIC, timeline=True, until_ns=10**9))
    moves = [(move.pod, move.source, move.target, move.cause) for move in result.moves or ()]
    assert moves == [
        ("default/p", "", "active", "UnschedulablePodAdd"),
        ("default/q", "", "active", "UnschedulablePodAdd"),
        ("default/p", "active", "in flight", "Pop"),
        ("default/p", "in flight", "bound", "Bind"),
        ("default/q", "active", "in flight", "Pop"),
        ("default/q", "in flight", "unschedulable", "ScheduleAttemptFailure"),
    ]
