"""A cycle that keeps what rows say finds what a cycle finds that looks at all of them anew, whoever is nominated where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan.engine.cycle import ScheduleResult, schedule_pod
from bayplan.engine.failure_board import FailureBoards
from bayplan.engine.node_sampling import NodeSampling
from bayplan.engine.nominator import NominatingInfo, NominatingMode
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import first_by_name
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from bayplan.framework.plugin import PROCEED, FilterPlugin, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import SKIP, Code, Status
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from tests.engine.clusters import random_node, random_pod
from tests.engine.preemption_worlds import node, preemptor, running, scheduler_of
from tests.engine.recorders import make_scheduler


def cycle(
    scheduler: Scheduler, pod: Pod, boards: FailureBoards | None, sampling: NodeSampling | None
) -> ScheduleResult:
    plan = scheduler.plans.plan_for(scheduler.profiles["default-scheduler"], pod)
    return schedule_pod(plan, pod, CycleState(), scheduler.nominated_pods, first_by_name, sampling, (), boards)


def told(scheduler: Scheduler, result: ScheduleResult) -> dict[str, object]:
    """Return all that others read of a result."""
    found: dict[str, object] = {
        "row": result.row,
        "ties": list(map(int, result.ties)),
        "total": result.total,
        "feasible": result.feasible_nodes,
        "evaluated": result.evaluated_nodes,
        "overrides": dict(result.overrides),
        "refused": (result.refused_row, result.refusal),
        "failure": result.failure,
    }
    diagnosis = result.diagnosis
    if diagnosis is not None:
        alive = scheduler.state.nodes.alive
        found["message"] = diagnosis.message()
        found["rejecting"] = diagnosis.unschedulable_plugins
        found["first"] = diagnosis.first[alive].tolist()
        found["verdicts"] = diagnosis.verdicts[alive].tolist()
        for code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.ERROR):
            found[code.name] = (diagnosis.rows_with(code) & alive).nonzero()[0].tolist()
    return found


def with_priority(random: Random, pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, priority=random.choice((0, 0, 10))))


def change(random: Random, scheduler: Scheduler, number: int) -> None:
    """Let a pod come or go, be nominated or no longer, or a node come, change or go."""
    state, chance = scheduler.state, random.random()
    names = sorted(state.nodes.row_of)
    if chance < 0.35:
        pod = with_priority(random, random_pod(random, f"p{number}"))
        bound = replace(pod, spec=replace(pod.spec, node_name=random.choice(names)))
        scheduler.handle(None, bound, number)
    elif chance < 0.5 and state.pods:
        info = state.pods[random.choice(sorted(state.pods))]
        scheduler.handle(info.pod, None, number)
    elif chance < 0.8:
        nominee = with_priority(random, random_pod(random, f"nominee-{random.randrange(8)}"))
        scheduler.pods[nominee.key] = nominee
        scheduler.queue.nominate(nominee, NominatingInfo(NominatingMode.OVERRIDE, random.choice(names)))
    elif chance < 0.9:
        nominee = random_pod(random, f"nominee-{random.randrange(8)}")
        scheduler.queue.unnominate(nominee)
    elif chance < 0.95:
        scheduler.handle(None, random_node(random, f"extra-{number}"), number)
    elif len(names) > 3:
        row = state.nodes.row_of[random.choice(names)]
        scheduler.handle(state.nodes.nodes[row], None, number)


@pytest.mark.parametrize("sampled", [False, True], ids=["all nodes", "sampled"])
@pytest.mark.parametrize("seed", range(10))
def test_a_cycle_with_boards_finds_what_one_without_finds(seed: int, sampled: bool) -> None:
    random = Random(seed)
    scheduler = scheduler_of([])
    for number in range(random.choice((4, 12, 130))):
        scheduler.handle(None, random_node(random, f"n{number:03}"), 0)
    boards = FailureBoards(scheduler.nominated_pods.log)
    used = 0
    for number in range(120):
        change(random, scheduler, number)
        pod = with_priority(random, random_pod(random, f"nominee-{random.randrange(8)}"))
        if random.random() < 0.3:
            node_name = scheduler.queue.nominator.node_by_uid.get(pod.metadata.uid, "")
            pod = replace(pod, status=replace(pod.status, nominated_node_name=node_name))
        starts = [NodeSampling(), NodeSampling()] if sampled else [None, None]
        for start in starts:
            if start is not None:
                start.next_start = number
        without = cycle(scheduler, pod, None, starts[0])
        result = cycle(scheduler, pod, boards, starts[1])
        assert told(scheduler, result) == told(scheduler, without)
        if sampled:
            assert starts[0] is not None
            assert starts[1] is not None
            assert starts[0].next_start == starts[1].next_start
        used += result.board is not None
    assert used > 10


def test_a_pod_does_not_count_itself_on_the_row_it_is_nominated_to() -> None:
    scheduler = scheduler_of([node("n1", "2"), node("n2", "2"), running("full", "2", 200, "n2")])
    boards = FailureBoards(scheduler.nominated_pods.log)
    first, second = (preemptor("2", 100, name).obj() for name in ("first", "second"))
    scheduler.pods.update({pod.key: pod for pod in (first, second)})
    scheduler.queue.nominate(first, NominatingInfo(NominatingMode.OVERRIDE, "n1"))
    row = scheduler.state.nodes.row_of["n1"]
    for _ in range(2):
        assert cycle(scheduler, second, boards, None).row < 0
        assert cycle(scheduler, first, boards, None).row == row


def test_what_rows_say_is_counted_row_by_row() -> None:
    scheduler = scheduler_of([node(f"n{number}", "2") for number in range(100)])
    boards = FailureBoards(scheduler.nominated_pods.log)
    for number in range(100):
        scheduler.handle(None, running(f"r{number}", "1", 0, f"n{number}").obj(), 0)
        result = cycle(scheduler, preemptor("2").obj(), boards, None)
        if number < 99:
            assert result.row >= 0
            continue
        assert result.board is not None
        assert sum(result.board.counts.values()) == np.count_nonzero(result.board.first >= 0) == 100


@dataclass(frozen=True)
class NoSpec:
    key: str = ""


class Day(PreFilterPlugin[NoSpec], FilterPlugin[NoSpec]):
    """Rejects every node by day; at night it takes its Filter out of the cycle."""

    name: ClassVar[str] = "Day"
    reads: ClassVar[Reads] = Reads.NODES
    skips_at_night: ClassVar[bool] = True
    night: ClassVar[bool] = False

    def compile(self, pod: Pod, cluster: ClusterState) -> NoSpec:
        return NoSpec()

    def pre_filter(self, spec: NoSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        return SKIP if Day.night is self.skips_at_night else PROCEED

    def filter(self, spec: NoSpec, params: Params | None, rows: Rows) -> Codes:
        return rows.verdicts((rows.everywhere(True), 1))

    def reasons(self, spec: NoSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        return (f"not by {self.name.lower()}",)

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        return [(ClusterEvent(EventResource.NODE, ActionType.ADD), None)]


class Night(Day):
    """Does so at night."""

    name: ClassVar[str] = "Night"
    skips_at_night: ClassVar[bool] = False


def test_filters_that_take_turns_are_told_apart_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = make_scheduler(Day, Night, nodes=["n1"])
    boards, pod, found = FailureBoards(scheduler.nominated_pods.log), preemptor("1").obj(), []
    for night in (False, True, False):
        monkeypatch.setattr(Day, "night", night)
        result = cycle(scheduler, pod, boards, None)
        assert result.diagnosis is not None
        assert result.board is not None
        found.append((result.diagnosis.message(), result.diagnosis.unschedulable_plugins))
    by_day, by_night = (
        ("0/1 nodes are available: 1 not by day.", ("Day",)),
        ("0/1 nodes are available: 1 not by night.", ("Night",)),
    )
    assert found == [by_day, by_night, by_day]
