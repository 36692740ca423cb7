"""Tests of the recorded events that caused attempts, and of the messages of PreEnqueue plugins."""

from __future__ import annotations

from bayplan.engine.scheduler import Scheduler
from bayplan.live.instrumented_queue import GateStatus, InstrumentedQueue, Origin
from bayplan.testing import make_node, make_pod
from tests.live.hosts import Cluster, make_faulty_plugin, small_cluster, small_pod


def origins(cluster: Cluster, name: str) -> list[Origin | None]:
    return [cluster.decisions.origin(number) for number in cluster.decisions.numbers_of(f"default/{name}")]


def test_origins_distinguish_pod_add_timeout_and_node_add() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("big", cpu="50"))
    cluster.run()
    cluster.pass_seconds(20)
    cluster.add(make_node("n9").capacity(cpu="30", memory="8Gi", pods="20").obj())
    cluster.run()
    cluster.pass_seconds(400)
    assert origins(cluster, "big") == [
        Origin("UnschedulablePodAdd", "active"),
        Origin("UnschedulableTimeout", "active"),
    ]
    cluster.add(make_node("n10").capacity(cpu="60", memory="8Gi", pods="20").obj())
    cluster.run()
    assert origins(cluster, "big")[-1] == Origin("NodeAdd", "active")


def test_a_retry_after_an_error_has_a_backoff_origin() -> None:
    cluster = small_cluster()
    cluster.refuses.add("default/p")
    cluster.add(small_pod("p"))
    cluster.run()
    cluster.refuses.clear()
    cluster.pass_seconds(3)
    first, refused, again = origins(cluster, "p")
    assert first == refused == Origin("UnschedulablePodAdd", "active")
    assert again == Origin("ScheduleAttemptFailure", "active")


def test_a_pod_popped_early_from_backoff_has_its_event_as_origin() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("big", cpu="50"))
    cluster.run()
    cluster.add(make_node("n10").capacity(cpu="60", memory="8Gi", pods="20").obj())
    cluster.run()
    assert origins(cluster, "big")[-1] == Origin("NodeAdd", "backoff")


def gate_of(cluster: Cluster, name: str) -> GateStatus | None:
    def look(scheduler: Scheduler) -> GateStatus | None:
        assert isinstance(scheduler.queue, InstrumentedQueue)
        return scheduler.queue.gate_of(f"default/{name}")

    return cluster.host.call(look)


def test_a_gate_status_is_reported_while_the_pod_is_gated() -> None:
    cluster = small_cluster()
    cluster.add(make_pod("p").gate("quota").gate("budget").req(cpu="1").obj())
    cluster.run()
    assert gate_of(cluster, "p") == GateStatus("SchedulingGates", "waiting for scheduling gates: [quota budget]")
    cluster.add(make_pod("p").req(cpu="1").obj())
    cluster.run()
    assert gate_of(cluster, "p") is None
    assert cluster.nodes_of()["p"]


def test_an_exception_in_pre_enqueue_is_reported_as_gate_status() -> None:
    cluster = small_cluster(make_faulty_plugin("pre_enqueue", "raise"))
    cluster.add(small_pod("bad"))
    cluster.run()
    said = gate_of(cluster, "bad")
    assert said is not None
    assert said.plugin == "Trouble"
    assert said.message.startswith("KeyError: 'zone'")


def test_bound_and_deleted_pods_are_forgotten() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("p"), small_pod("big", cpu="50"))
    cluster.run()
    cluster.delete(small_pod("big", cpu="50"))
    cluster.run()

    def left(scheduler: Scheduler) -> tuple[int, int, int]:
        queue = scheduler.queue
        assert isinstance(queue, InstrumentedQueue)
        return len(queue._labels), len(queue._origins), len(queue._gates)

    assert cluster.host.call(left) == (0, 0, 0)
