"""Pods in virtual time, to the nanosecond: creation, waiting, binding, end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.cluster.kubelet import PodRun
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queue import SchedulingQueue
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import PermitPlugin
from bayplan.framework.status import Code, Status
from bayplan.objects.meta import OwnerReference
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet, Deployment
from bayplan.plugins.registry import in_tree_registry
from bayplan.sim.operations import Apply, Cordon, Delete, Evict, Operation
from bayplan.sim.result import PodFate, SimulationResult
from bayplan.testing import make_pod
from tests.sim.simulations import MINUTE, SECOND, START, document, node, pod, pod_times, simulate, simulator, template

CASES = [
    (
        "a pod is bound at the instant of its arrival",
        [(0, node("n")), (1_500_000_001, pod("p"))],
        [("p", "n", 1_500_000_001, 1_500_000_001, None)],
    ),
    (
        "a pod finishes when its run time is over",
        [(0, node("n")), (7, pod("p", runs="90s"))],
        [("p", "n", 7, 7, 7 + 90 * SECOND)],
    ),
    (
        "a pod without room waits until another finishes, and gets its place at that instant",
        [(0, node("n")), (0, pod("first", "3", runs="1m1ns")), (5, pod("second", "2", runs="2s"))],
        [("first", "n", 0, 0, MINUTE + 1), ("second", "n", 5, MINUTE + 1, MINUTE + 1 + 2 * SECOND)],
    ),
    (
        "a pod waits for a node to come",
        [(0, node("small", "1")), (0, pod("big", "2")), (42, node("large", "2"))],
        [("big", "large", 0, 42, None)],
    ),
    (
        "a pod waits for another to be deleted",
        [(0, node("n")), (0, pod("old", "4")), (1, pod("new", "4")), (99, Delete(Pod, "default/old"))],
        [("old", "n", 0, 0, 99), ("new", "n", 1, 99, None)],
    ),
    (
        "room is released before pods arrive, in any order of operations",
        [(0, node("n")), (0, pod("old", "4")), (9, pod("new", "4")), (9, Delete(Pod, "default/old"))],
        [("old", "n", 0, 0, 9), ("new", "n", 9, 9, None)],
    ),
    (
        "a node is there before the pods that arrive with it",
        [(3, pod("p")), (3, node("n"))],
        [("p", "n", 3, 3, None)],
    ),
    (
        "of two pods that wait the one with the higher priority goes first",
        [
            (0, node("n")),
            (0, pod("running", "4", runs="10s", priority=2)),
            (1, pod("low", "3")),
            (2, pod("high", "3", priority=1)),
        ],
        [("running", "n", 0, 0, 10 * SECOND), ("low", "", 1, None, None), ("high", "n", 2, 10 * SECOND, None)],
    ),
    (
        "a pod with a higher priority takes the place of a running one, which is gone at once",
        [(0, node("n")), (0, pod("running", "4", runs="10s")), (3, pod("high", "3", priority=1))],
        [("running", "n", 0, 0, 3), ("high", "n", 3, 3, None)],
    ),
    (
        "of two pods of equal priority the older goes first",
        [(0, node("n")), (0, pod("running", "4", runs="10s")), (1, pod("older", "3")), (2, pod("younger", "3"))],
        [("running", "n", 0, 0, 10 * SECOND), ("older", "n", 1, 10 * SECOND, None), ("younger", "", 2, None, None)],
    ),
    (
        "a pod waits for a cordoned node to be opened",
        [(0, node("n")), (0, Cordon("n")), (5, pod("p")), (8, Cordon("n", unschedulable=False))],
        [("p", "n", 5, 8, None)],
    ),
    (
        "a run time of 0 lets a pod come and go at one instant, and the next one have its room",
        [(0, node("n")), (4, pod("a", "4", runs="0s")), (4, pod("b", "4", runs="0s"))],
        [("a", "n", 4, 4, 4), ("b", "n", 4, 4, 4)],
    ),
    (
        "a pod that is deleted while it waits is gone",
        [(0, pod("p")), (5, Delete(Pod, "default/p")), (6, node("n"))],
        [("p", "", 0, None, 5)],
    ),
]


@pytest.mark.parametrize(("operations", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_pods_arrive_bind_and_end_at_the_expected_times(
    operations: list[tuple[int, Operation]], want: list[tuple[object, ...]]
) -> None:
    assert pod_times(simulate(*operations)) == want


def test_an_unschedulable_pod_does_not_extend_the_run() -> None:
    result = simulate((0, node("n")), (7, pod("huge", "100")), (9 * SECOND, pod("small")))
    # It is tried once more when nothing else happens, at the next flush of unschedulable pods.
    assert result.end_ns - START == 330 * SECOND
    (huge,) = [each for each in result.pods if each.key == "default/huge"]
    assert (huge.fate, huge.attempts) == (PodFate.PENDING, 2)
    assert huge.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert result.stopped == ""


def test_a_run_stops_at_until_ns() -> None:
    result = simulate((0, node("n")), (0, pod("p", runs="1h")), (2 * MINUTE, pod("late")), until_ns=MINUTE)
    assert pod_times(result) == [("p", "n", 0, 0, None)]
    assert result.duration_ns == MINUTE
    assert result.stopped == "the requested time is over"


def test_operations_at_until_ns_are_executed() -> None:
    result = simulate((0, node("n")), (MINUTE, pod("p")), until_ns=MINUTE)
    assert pod_times(result) == [("p", "n", MINUTE, MINUTE, None)]
    assert result.stopped == ""


def test_a_run_can_be_continued() -> None:
    made = simulator((0, node("n")), (0, pod("p", runs="1h")), (2 * MINUTE, pod("late")))
    made.run(until_ns=START + MINUTE)
    assert len(made.result().pods) == 1
    made.run()
    assert pod_times(made.result()) == [("p", "n", 0, 0, 60 * MINUTE), ("late", "n", 2 * MINUTE, 2 * MINUTE, None)]


def test_runs_do_not_share_state() -> None:
    operations = [(0, node("n")), (0, pod("p"))]
    made = simulator(*operations)
    assert pod_times(simulate(*operations)) == [("p", "n", 0, 0, None)]
    assert made.result().pods == []


def test_pods_start_after_the_start_delay() -> None:
    result = simulate((0, node("n")), (0, pod("p", runs="10s")), start_delay_ns=3 * SECOND)
    (only,) = result.pods
    assert only.started_ns == START + 3 * SECOND
    assert pod_times(result) == [("p", "n", 0, 0, 13 * SECOND)]


def test_run_of_sets_run_time_and_exit_code() -> None:
    result = simulate((0, node("n")), (0, pod("p")), run_of=lambda _: PodRun(5, exit_code=1))
    assert pod_times(result) == [("p", "n", 0, 0, 5)]
    assert result.pods[0].fate is PodFate.FAILED


def test_a_job_runs_its_completions_one_after_another() -> None:
    spec = {"completions": 3, "parallelism": 1, "template": template(runs="10s", restartPolicy="Never")}
    result = simulate((0, node("n")), (0, Apply(document("batch/v1", "Job", "work", spec))))
    tens = [0, 10 * SECOND, 20 * SECOND]
    assert [each.arrived_ns - START for each in result.pods] == tens
    assert [each.bound_ns for each in result.pods] == [START + ten for ten in tens]
    assert [each.ended_ns for each in result.pods] == [START + ten + 10 * SECOND for ten in tens]
    assert {each.fate for each in result.pods} == {PodFate.SUCCEEDED}
    assert {each.workload for each in result.pods} == {"Job default/work"}


def test_a_daemon_set_adds_and_removes_pods_with_nodes() -> None:
    agent = document(
        "apps/v1", "DaemonSet", "agent", {"selector": _app("agent"), "template": template("1", app="agent")}
    )
    assert isinstance(agent, DaemonSet)
    result = simulate((0, node("a")), (1, Apply(agent)), (50, node("b")), (90, Delete(Node, "a")))
    assert [(on, bound, ended) for _, on, _, bound, ended in pod_times(result)] == [("a", 1, 90), ("b", 50, None)]
    assert [
        (each.name, each.added_ns - START, each.removed_ns and each.removed_ns - START) for each in result.nodes
    ] == [
        ("a", 0, 90),
        ("b", 50, None),
    ]


def test_pods_of_a_deleted_node_are_recreated_on_another_node() -> None:
    web = document(
        "apps/v1", "Deployment", "web", {"replicas": 2, "selector": _app("web"), "template": template("3", app="web")}
    )
    assert isinstance(web, Deployment)
    result = simulate((0, node("a")), (0, node("b")), (1, Apply(web)), (5, Delete(Node, "a")), (9, node("c")))
    placed = [(on, bound, ended) for _, on, _, bound, ended in pod_times(result)]
    assert sorted(placed[:2]) == [("a", 1, 5), ("b", 1, None)]
    assert placed[2:] == [("c", 9, None)]
    assert result.pods[2].arrived_ns == START + 5
    assert {each.workload for each in result.pods} == {"Deployment default/web"}


def test_an_endless_workload_is_stopped_one_day_after_the_last_operation() -> None:
    beat = {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": template(runs="1m", restartPolicy="Never")}}}
    result = simulate((0, node("n")), (MINUTE, Apply(document("batch/v1", "CronJob", "beat", beat))))
    assert result.stopped == "CronJob default/beat would run forever"
    assert result.duration_ns == MINUTE + 24 * 60 * MINUTE
    assert len(result.pods) == 24


def test_a_replica_set_of_an_unknown_owner_is_an_endless_workload() -> None:
    spec = {"replicas": 1, "selector": _app("app"), "template": template(runs="1h")}
    item = document("apps/v1", "ReplicaSet", "web", spec)
    owner = OwnerReference(api_version="argoproj.io/v1alpha1", kind="Rollout", name="web", uid="u", controller=True)
    owned = replace(item, metadata=replace(item.metadata, owner_references=(owner,)))
    result = simulate((0, node("n")), (0, Apply(owned)))
    assert result.stopped == "ReplicaSet default/web would run forever"
    assert len(result.pods) == 25


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_a_workload_without_replicas_does_not_end_a_run(kind: str) -> None:
    spec = {"replicas": 0, "selector": _app("app"), "template": template(runs="1h")}
    empty = Apply(document("apps/v1", kind, "web", spec))
    result = simulate((0, node("n")), (0, empty), (0, pod("long", runs="48h")))
    assert result.stopped == ""
    assert result.duration_ns == 48 * 60 * MINUTE


def test_a_workload_whose_pods_end_immediately_is_refused() -> None:
    flash = {"replicas": 1, "selector": _app("app"), "template": template(runs="0s")}
    with pytest.raises(InputError, match="keeps changing"):
        simulate((0, node("n")), (0, Apply(document("apps/v1", "ReplicaSet", "flash", flash))), check=False)


def test_an_object_refused_by_the_cluster_is_reported() -> None:
    refused = Apply(make_pod("p").spec(priorityClassName="nowhere").uid("").obj())
    result = simulate((0, node("n")), (0, refused), (0, pod("q")))
    assert pod_times(result) == [("q", "n", 0, 0, None)]
    assert list(result.failures) == ["Pod default/p"]
    assert "nowhere" in result.failures["Pod default/p"]


def test_pods_of_other_schedulers_are_unattended_and_gated_pods_stay_gated() -> None:
    other, gated = make_pod("other").scheduler("theirs").obj(), make_pod("gated").gate("example.com/ready").obj()
    result = simulate((0, node("n")), (0, Apply(other)), (0, Apply(gated)), (0, pod("ours")))
    assert {each.key: each.fate for each in result.pods} == {
        "default/other": PodFate.UNATTENDED,
        "default/gated": PodFate.GATED,
        "default/ours": PodFate.PLACED,
    }


def test_a_pod_created_with_a_node_is_imported() -> None:
    result = simulate((0, node("n")), (5, Apply(make_pod("p").node("n").obj())))
    (only,) = result.pods
    assert (only.imported, only.node, only.bound_ns, only.wait_ns) == (True, "n", START + 5, None)
    assert result.counters.decisions == 0


def test_each_failed_attempt_of_a_pending_pod_emits_an_event() -> None:
    result = simulate((0, node("n", "1")), (0, pod("p", "2")), (3 * SECOND, node("o", "1")))
    assert [(each.pod, each.type, each.reason, each.action) for each in result.events] == [
        ("default/p", "Warning", "FailedScheduling", "Scheduling"),
        ("default/p", "Warning", "FailedScheduling", "Scheduling"),
    ]
    assert result.events[0].note.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert result.events[1].note.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_counters_and_the_condition_of_a_pending_pod_are_set() -> None:
    result = simulate((0, node("n")), (0, pod("p", runs="1s")), (0, pod("huge", "9")))
    counters = result.counters
    assert (counters.decisions, counters.scheduled, counters.unschedulable) == (3, 1, 2)
    assert counters.decisions == len(result.records)
    (condition,) = result.cluster.store.pods["default/huge"].status.conditions
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert condition.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


class Lucky(PerNodePlugin):
    """Rejects nodes unless their name contains ``lucky``."""

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        return None if "lucky" in node.node.metadata.name else "node(s) had no luck"


def test_a_pod_rejected_by_a_custom_plugin_is_retried_on_any_event() -> None:
    result = simulate((0, node("n")), (0, pod("p")), (5, node("lucky")), plugins=[Lucky])
    assert pod_times(result) == [("p", "lucky", 0, 5, None)]


class Broken(PerNodePlugin):
    """Returns an Error status; upstream retries such a pod every few seconds, forever."""

    def filter_node(self, pod: Pod, node: NodeInfo) -> object:  # type: ignore[override]
        from bayplan.framework.status import error

        return error("no idea")


def test_a_pod_with_plugin_errors_does_not_extend_the_run() -> None:
    result = simulate((0, node("n")), (0, pod("p")), plugins=[Broken])
    assert result.pods[0].fate is PodFate.PENDING
    assert result.counters.errors == 1


class Reluctant(PermitPlugin[None]):
    """Lets every pod wait on its node for a minute, and never allows it."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        return Status(Code.WAIT), MINUTE


def test_pods_that_a_plugin_never_allows_end_the_run_a_day_after_the_last_change() -> None:
    result = simulate((0, node("n")), (0, pod("p")), (MINUTE // 2, pod("late", "9")), plugins=[Reluctant])
    assert result.stopped == "a plugin would make pods wait and reject them forever"
    assert 24 * 60 * MINUTE < result.duration_ns < (24 * 60 + 3) * MINUTE


class Remover:
    """An agent that deletes a pod after two days."""

    def __init__(self) -> None:
        self.due_ns: int | None = START + 2 * 24 * 60 * MINUTE

    def next_wakeup_ns(self, changes: int) -> int | None:
        return self.due_ns

    def act(self, now_ns: int, changes: int) -> list[tuple[int, Operation]]:
        self.due_ns = None
        return [(now_ns, Delete(Pod, "default/p"))]

    def endless_reason(self, given_ns: int) -> str:
        return ""


def test_a_run_with_pods_that_a_plugin_never_allows_continues_while_an_agent_is_due() -> None:
    made = simulator((0, node("n")), (0, pod("p")), plugins=[Reluctant])
    made.agents.add(Remover())
    made.run()
    result = made.result()
    assert result.stopped == ""
    assert result.duration_ns == 2 * 24 * 60 * MINUTE


WAITING: list[tuple[int, Operation]] = [
    (0, node("n", "4")),
    *[(10 * MINUTE * number, pod(f"long-{number}", "3", runs="25m")) for number in range(8)],
    *[(7 * MINUTE * number + 3, pod(f"short-{number}", "2", runs="7m")) for number in range(8)],
    (33 * MINUTE, node("m", "3")),
]


@pytest.mark.parametrize(
    "look", [lambda result: pod_times(result), lambda result: result.usage], ids=["the pod_times", "usage"]
)
def test_skipping_attempts_that_cannot_succeed_does_not_change_the_result(
    look: Callable[[SimulationResult], object],
) -> None:
    upstream = simulate(*WAITING, queue_type=SchedulingQueue)
    ours = simulate(*WAITING)
    assert look(ours) == look(upstream)
    assert ours.counters.decisions < upstream.counters.decisions


def _app(name: str) -> dict[str, object]:
    return {"matchLabels": {"app": name}}


def test_advance_moves_time_without_events() -> None:
    made = simulator((0, node("n")), (0, pod("p")))
    assert not made.advance(START + MINUTE)
    assert made.now_ns == START + MINUTE
    assert [each.node for each in made.pods] == ["n"]


def test_advance_stops_when_its_condition_becomes_true() -> None:
    made = simulator((0, node("n")), (0, pod("p", runs="10s")), (20 * SECOND, pod("q")))
    assert made.advance(START + MINUTE, stop=lambda: any(each.ended_ns for each in made.pods))
    assert made.now_ns == START + 10 * SECOND


def test_settle_returns_true_once_nothing_can_change() -> None:
    made = simulator((0, node("n")), (0, pod("p", runs="10s")), (0, pod("large", "9")))
    assert not made.settle(START + 5 * SECOND)
    assert made.now_ns == START + 5 * SECOND
    assert made.settle(START + MINUTE)
    assert [each.fate for each in made.pods] == [PodFate.SUCCEEDED, PodFate.PENDING]


def test_perform_executes_an_operation_and_its_immediate_consequences() -> None:
    made = simulator((0, node("n")), (0, pod("old", "4")), (0, pod("new", "4")))
    made.advance(START + MINUTE)
    made.perform(Evict("default/old"))
    assert [(each.node, each.bound_ns, each.disruption) for each in made.pods] == [
        ("n", START, "EvictionByEvictionAPI"),
        ("n", START + MINUTE, ""),
    ]


def test_a_preempted_pod_records_its_disruption_reason() -> None:
    result = simulate((0, node("n")), (0, pod("running", "4")), (3, pod("high", "3", priority=1)))
    assert [each.disruption for each in result.pods] == ["PreemptionByScheduler", ""]


def test_a_replaced_scheduler_retries_pending_pods() -> None:
    made = simulator((0, node("n")), (0, Cordon("n")), (0, pod("p")), (0, pod("q", "9")))
    made.advance(START + MINUTE)
    assert [each.node for each in made.pods] == ["", ""]
    before = len(made.scheduler.records)
    configuration = default_configuration(FeatureGates())
    careless = configuration.without_plugins(("NodeUnschedulable", "TaintToleration"))
    made.replace_scheduler(
        assemble_scheduler(
            careless,
            in_tree_registry(),
            feature_gates=FeatureGates(),
            start_ns=made.now_ns,
            state=made.scheduler.state,
            queue_type=EventDrivenQueue,
        )
    )
    assert [each.node for each in made.pods] == ["n", ""]
    assert len(made.scheduler.records) == before + 2, "records continue"
    made.scheduler.state.check_invariants()
    made.scheduler.queue.check_invariants()
