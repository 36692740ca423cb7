"""What made a pod ready to be tried stands in the record of the attempt."""

from __future__ import annotations

from bayplan.live.noting_queue import NotingQueue, Origin
from bayplan.testing import make_node
from tests.live.hosts import Cluster, small_cluster, small_pod


def origins(cluster: Cluster, name: str) -> list[Origin | None]:
    return [cluster.decisions.origin(number) for number in cluster.decisions.numbers_of(f"default/{name}")]


def test_a_new_pod_an_event_and_the_timer() -> None:
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


def test_a_pod_that_failed_by_an_error_comes_back_from_the_backoff() -> None:
    cluster = small_cluster()
    cluster.refuses.add("default/p")
    cluster.add(small_pod("p"))
    cluster.run()
    cluster.refuses.clear()
    cluster.pass_seconds(3)
    first, refused, again = origins(cluster, "p")
    assert first == refused == Origin("UnschedulablePodAdd", "active")
    assert again == Origin("ScheduleAttemptFailure", "active")


def test_a_pod_that_waits_for_its_backoff_is_taken_early_where_nothing_else_is_ready() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("big", cpu="50"))
    cluster.run()
    cluster.add(make_node("n10").capacity(cpu="60", memory="8Gi", pods="20").obj())
    cluster.run()
    assert origins(cluster, "big")[-1] == Origin("NodeAdd", "backoff")


def test_pods_that_are_bound_or_gone_are_forgotten() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("p"), small_pod("big", cpu="50"))
    cluster.run()
    cluster.delete(small_pod("big", cpu="50"))
    cluster.run()

    def left(scheduler: object) -> tuple[int, int]:
        queue = scheduler.queue  # type: ignore[attr-defined]
        assert isinstance(queue, NotingQueue)
        return len(queue._labels), len(queue._origins)

    assert cluster.host.ask(left) == (0, 0)
