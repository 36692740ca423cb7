"""A cycle that keeps what rows say finds what a cycle finds that looks at all of them anew, whoever is nominated where."""

from __future__ import annotations

from random import Random

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
from bayplan.framework.status import Code
from bayplan.objects.pod import Pod
from tests.engine.clusters import random_node, random_pod
from tests.engine.preemption_worlds import node, preemptor, running, scheduler_of


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
