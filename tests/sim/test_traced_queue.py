"""The timeline of the scheduling queue: each move of each pod, with its cause, at the right nanosecond."""

from __future__ import annotations

import pytest

from bayplan.analysis.timeline_text import seconds, timeline_lines
from bayplan.controllers.writer import Propagation
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PermitPlugin, ReservePlugin
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.objects.pod import Pod
from bayplan.sim.operations import Apply, Delete
from bayplan.sim.result import SimulationResult
from bayplan.sim.traced_queue import QueueMove, TracedQueue
from bayplan.testing import make_node, make_pod
from tests.sim.simulations import MINUTE, SECOND, START, node, pod, simulate


def ways(result: SimulationResult, name: str) -> list[tuple[int, str, str, str]]:
    """Return the moves of a pod: time since the start, source, target and cause."""
    assert result.moves is not None
    return [
        (move.time_ns - START, move.source, move.target, move.cause)
        for move in result.moves
        if move.pod == f"default/{name}"
    ]


def tainted(name: str) -> Apply:
    return Apply(make_node(name).capacity(cpu="8", memory="8Gi").taint("team", "red").obj())


def test_a_feasible_pod_moves_from_active_to_bound() -> None:
    result = simulate((0, node("n")), (5, pod("p", "1")), queue_type=TracedQueue)
    assert ways(result, "p") == [
        (5, "", "active", "UnschedulablePodAdd"),
        (5, "active", "in flight", "Pop"),
        (5, "in flight", "bound", "Bind"),
    ]


def test_event_and_timer_moves_have_exact_times() -> None:
    result = simulate(
        (0, node("n", "1")),
        (0, pod("p", "4")),
        (2_500_000_123, tainted("t")),
        (400 * SECOND + 7, node("m")),
        queue_type=TracedQueue,
    )
    assert ways(result, "p")[3:] == [
        # The event wakes the pod: its backoff, one second plus the rest of the window, is over.
        (2_500_000_123, "unschedulable", "active", "NodeAdd"),
        (2_500_000_123, "active", "in flight", "Pop"),
        (2_500_000_123, "in flight", "unschedulable", "ScheduleAttemptFailure"),
        # After more than five minutes, the flush that runs every 30 s activates it.
        (330 * SECOND, "unschedulable", "active", "UnschedulableTimeout"),
        (330 * SECOND, "active", "in flight", "Pop"),
        (330 * SECOND, "in flight", "unschedulable", "ScheduleAttemptFailure"),
        (400 * SECOND + 7, "unschedulable", "active", "NodeAdd"),
        (400 * SECOND + 7, "active", "in flight", "Pop"),
        (400 * SECOND + 7, "in flight", "bound", "Bind"),
    ]
    assert result.moves is not None
    failure = result.moves[2]
    assert failure.plugins == ("NodeResourcesFit",)
    assert failure.note.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_pod_in_backoff_is_popped_when_the_active_queue_is_empty() -> None:
    result = simulate(
        (0, node("n", "1")), (0, pod("p", "4")), (250_000_000, tainted("t")), until_ns=SECOND, queue_type=TracedQueue
    )
    assert ways(result, "p")[3:5] == [
        (250_000_000, "unschedulable", "backoff", "NodeAdd"),
        (250_000_000, "backoff", "in flight", "PopFromBackoffQ"),
    ]
    assert result.moves is not None
    assert result.moves[3].backoff_end_ns == START + SECOND


def test_gated_and_deleted_pods_are_traced() -> None:
    gated = make_pod("g").req(cpu="1").spec(schedulingGates=[{"name": "x"}]).obj()
    free = make_pod("g").req(cpu="1").obj()
    result = simulate(
        (0, node("n", "2")),
        (0, Apply(gated)),
        (0, pod("p", "4")),
        (MINUTE, Apply(free)),
        (2 * MINUTE, Delete(Pod, "default/p", Propagation.BACKGROUND)),
        queue_type=TracedQueue,
    )
    assert ways(result, "g")[0][1:] == ("", "gated", "UnschedulablePodAdd")
    assert ways(result, "g")[-1][1:3] == ("in flight", "bound")
    assert ways(result, "p")[-1] == (2 * MINUTE, "unschedulable", "gone", "UnschedulablePodDelete")


class Waits(PermitPlugin[None], ReservePlugin[None]):
    """Lets every pod wait at Permit for ten seconds, until the timeout rejects it."""

    name = "Waits"

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        return Status(Code.WAIT), 10 * SECOND


def test_a_permit_wait_is_traced_with_its_node_and_timeout() -> None:
    result = simulate((0, node("n")), (0, pod("p", "1")), until_ns=10 * SECOND, queue_type=TracedQueue, plugins=[Waits])
    assert [way[:3] for way in ways(result, "p")][2:4] == [
        (0, "in flight", "permit"),
        (10 * SECOND, "permit", "unschedulable"),
    ]
    assert result.moves is not None
    assert [move.note for move in result.moves[2:4]] == [
        "n",
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Waits.",
    ]


def test_a_traced_run_has_the_digest_of_an_ordinary_run() -> None:
    operations = (
        (0, node("n", "2")),
        *[(number * SECOND, pod(f"p{number}", "1", runs="30s")) for number in range(6)],
        (MINUTE, node("m", "2")),
    )
    traced = simulate(*operations, queue_type=TracedQueue)
    ordinary = simulate(*operations)
    assert traced.digest == ordinary.digest
    assert ordinary.moves is None


@pytest.mark.parametrize(
    ("time_ns", "want"),
    [(0, "0.000000000"), (1, "0.000000001"), (1_500_000_000, "1.500000000"), (400_123_456_789, "400.123456789")],
)
def test_times_have_nine_decimal_digits(time_ns: int, want: str) -> None:
    assert seconds(time_ns) == want


def test_timeline_lines_are_aligned_and_long_messages_truncated() -> None:
    moves = [
        QueueMove(0, "default/p", "u", "", "active", 0, "UnschedulablePodAdd"),
        QueueMove(SECOND, "default/p", "u", "active", "error backoff", 1, "X", (), 2 * SECOND, "no. " + "y" * 200),
        QueueMove(3 * SECOND, "default/p", "u", "error backoff", "in flight", 2, "Pop"),
        QueueMove(3 * SECOND, "default/p", "u", "in flight", "unschedulable", 2, "Y", ("A", "B"), None, "z" * 200),
    ]
    assert [*timeline_lines(moves, 0)] == [
        "0.000000000  default/p  new -> active               UnschedulablePodAdd",
        "1.000000000  default/p  active -> error backoff     X, backs off until 2.000000000: no",
        "3.000000000  default/p  error backoff -> in flight  Pop, attempt 2",
        f"3.000000000  default/p  in flight -> unschedulable  Y [A B]: {'z' * 96} ...",
    ]
