"""In a simulation, waiting pods get the same nodes as with upstream's queue, with far fewer attempts."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queue import SchedulingQueue
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.sim.operations import Apply, Cordon, Delete, Operation
from bayplan.sim.result import SimulationResult
from bayplan.testing import make_node, make_pod
from tests.sim.simulations import MINUTE, SECOND, START, node, pod, pod_times, simulate, simulator

AFFINITIES: tuple[dict[str, object] | None, ...] = (
    None,
    None,
    None,
    {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    },
    {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "topology.kubernetes.io/zone"}
            ]
        }
    },
)


def overloaded(
    random: Random, pods: int, *, step_ns: int, priorities: int, affinities: bool
) -> list[tuple[int, Operation]]:
    """Return a cluster that is too small for the arriving pods, in which nodes are added and deleted."""
    operations: list[tuple[int, Operation]] = []
    for number in range(random.randint(1, 4)):
        made = make_node(f"n{number}").capacity(cpu=str(random.randint(2, 6)), memory="8Gi").zone(random.choice("xy"))
        if random.random() < 0.3:
            made.taint("dedicated", "gpu")
        operations.append((0, Apply(made.obj())))
    for number in range(pods):
        shape = Random(random.randrange(5))
        made_pod = make_pod(f"p{number}").req(cpu=str(shape.randint(1, 3))).label(app=shape.choice("abc"))
        made_pod.annotation({"bayplan.io/run-time": f"{random.randint(1, 40)}s"}).priority(shape.randrange(priorities))
        affinity = shape.choice(AFFINITIES) if affinities else None
        if affinity is not None:
            made_pod.spec(affinity=affinity)
        if shape.random() < 0.4:
            made_pod.toleration("dedicated")
        operations.append((random.randint(0, pods) * step_ns, Apply(made_pod.obj())))
    for _ in range(random.randrange(6)):
        time_ns = random.randint(0, 2 * pods) * step_ns
        name = f"n{random.randrange(5)}"
        choices: list[Operation] = [
            Cordon(name),
            Cordon(name, unschedulable=False),
            Delete(Node, name),
            Delete(Pod, f"default/p{random.randrange(pods)}"),
            node(name, "3", zone="x"),
        ]
        operations.append((time_ns, random.choice(choices)))
    return operations


def compare(operations: Sequence[tuple[int, Operation]]) -> tuple[SimulationResult, SimulationResult]:
    upstream = simulate(*operations, queue_type=SchedulingQueue, check=False)
    ours = simulate(*operations, queue_type=EventDrivenQueue)
    assert pod_times(ours) == pod_times(upstream)
    assert [each.fate for each in ours.pods] == [each.fate for each in upstream.pods]
    return ours, upstream


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from([300_000_000, SECOND, 7 * SECOND, 50 * SECOND]),
    st.sampled_from([1, 1, 3]),
    st.booleans(),
)
# Two pods have the same shape; one is nominated for a node, so the other, older one fails.
@example(7001563, 50, 300_000_000, 3, False)
def test_pods_get_the_same_nodes_at_the_same_times_as_upstream(
    seed: int, pods: int, step_ns: int, priorities: int, affinities: bool
) -> None:
    operations = overloaded(Random(seed), pods, step_ns=step_ns, priorities=priorities, affinities=affinities)
    compare(operations)


def test_equal_pending_pods_need_far_fewer_attempts_than_upstream() -> None:
    """Forty pods wait for one place that comes free every ten seconds."""
    operations: list[tuple[int, Operation]] = [(0, node("n", "1"))]
    operations += [(number, pod(f"p{number}", runs="10s")) for number in range(40)]
    ours, upstream = compare(operations)
    assert upstream.counters.decisions > 700
    assert ours.counters.decisions < 300
    # The number of attempts in a pod's record includes skipped ones.
    attempts = {each.pod: each.attempt for each in ours.records}
    assert attempts == {each.pod: each.attempt for each in upstream.records}


def test_a_pod_retried_only_by_timeout_keeps_its_queue_position() -> None:
    # Both pods fail for the last time before the place becomes free: the first at 330 s and 660 s, the second at 420 s.
    operations = [
        (0, node("n", "1")),
        (0, pod("running", runs="700s")),
        (0, pod("first", runs="1s")),
        (100 * SECOND, pod("second", runs="1s")),
    ]
    ours, _ = compare(operations)
    assert [name for name, _, _, bound, _ in sorted(pod_times(ours), key=lambda each: str(each[3]).zfill(20))] == [
        "running",
        "second",
        "first",
    ]


def test_a_pod_pending_without_any_node_is_retried_with_error_backoff() -> None:
    """A timed retry finds no nodes, which is an error: the pod is then retried every eleven seconds, not when a node is added."""
    tainted = make_node("n").capacity(cpu="4", memory="8Gi").taint("dedicated", "gpu").obj()
    operations: list[tuple[int, Operation]] = [
        (0, Apply(tainted)),
        (150 * SECOND, pod("p", runs="7s")),
        (250 * SECOND, Delete(Node, "n")),
        (800 * SECOND, node("m")),
    ]
    ours, upstream = compare(operations)
    assert ours.counters.decisions < 10 < upstream.counters.decisions
    assert [(name, bound) for name, _, _, bound, _ in pod_times(ours)] == [("p", 807 * SECOND)]


def test_a_pod_with_changed_rejection_reasons_is_retried_when_they_are_resolved() -> None:
    """When room becomes free on the tainted node, the pods are rejected for another reason: only its taint."""
    tainted = make_node("n").capacity(cpu="2", memory="8Gi").taint("dedicated", "gpu")
    clean = make_node("n").capacity(cpu="2", memory="8Gi")
    running = Apply(
        make_pod("running").req(cpu="2").toleration("dedicated").annotation({"bayplan.io/run-time": "20m"}).obj()
    )
    blinks = [(number * MINUTE + SECOND, pod(f"blink-{number}", "1", runs="1s", priority=0)) for number in range(12)]
    operations: list[tuple[int, Operation]] = [
        (0, Apply(tainted.obj())),
        (0, node("other", "1")),
        (0, running),
        *[(0, pod(f"wide-{number}", "2")) for number in range(3)],
        *blinks,
        (40 * MINUTE, Apply(clean.obj())),
    ]
    ours, _ = compare(operations)
    assert ("wide-0", "n", 0, 40 * MINUTE, None) in pod_times(ours)


@pytest.mark.parametrize("until_s", [30, 301, 3000])
def test_a_stopped_run_reports_current_pending_reasons(until_s: int) -> None:
    operations: list[tuple[int, Operation]] = [(0, node("n", "1")), (0, pod("huge", "9"))]
    operations += [(number * SECOND, pod(f"p{number}", runs="10s")) for number in range(20)]
    operations += [(60 * SECOND, node("m", "1"))]
    result = simulate(*operations, until_ns=until_s * SECOND)
    huge = next(each for each in result.pods if each.key == "default/huge")
    nodes = 2 if until_s > 300 else 1
    assert huge.message.startswith(f"0/{nodes} nodes are available: {nodes} Insufficient cpu.")


def test_unschedulable_and_gated_pods_are_counted_separately() -> None:
    made = simulator(
        (0, node("n", "1")), (0, Apply(make_pod("gated").gate("example.com/later").obj())), (0, pod("p", "2"))
    )
    made.run()
    queue = made.scheduler.queue
    assert queue.pending_counts() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}
    assert made.now_ns - START <= 330 * SECOND
