"""Whole cycles of the classic scheduler: handling of outcomes, effects of cluster events, and the end of a search."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from bayplan.classic.assemble import assemble_classic_scheduler
from bayplan.classic.scheduler import ClassicScheduler
from bayplan.engine.actions import Action, Bind, Emit, Evict, Nominate, SetCondition
from bayplan.engine.records import Outcome
from bayplan.engine.select_host import first_by_name
from bayplan.testing.builders import NodeBuilder, PodBuilder, make_pod
from tests.classic.cycles import Item, configured, cycle_of, node, only_priority, scheduler_of, typed

SECOND = 1_000_000_000


def _schedule(scheduler: ClassicScheduler, builder: PodBuilder) -> tuple[Outcome, str, list[Action]]:
    scheduler.handle(None, builder.obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    return report.outcome, report.message, list(report.actions)


def test_a_fitting_pod_is_bound() -> None:
    outcome, _, actions = _schedule(scheduler_of([node()]), make_pod("p"))
    assert outcome is Outcome.SCHEDULED
    assert any(isinstance(action, Bind) and action.node_name == "n1" for action in actions)


def test_a_pod_without_a_feasible_node_is_unschedulable() -> None:
    outcome, message, actions = _schedule(scheduler_of([node(cpu="1")]), make_pod("p").req(cpu="2"))
    assert outcome is Outcome.UNSCHEDULABLE
    assert message == "0/1 nodes are available: 1 Insufficient cpu."
    assert [type(action) for action in actions] == [Emit, SetCondition]
    emitted, condition = actions
    assert isinstance(emitted, Emit)
    assert (emitted.type, emitted.reason) == ("Warning", "FailedScheduling")
    assert isinstance(condition, SetCondition)
    assert (condition.reason, condition.message) == ("Unschedulable", message)


def test_an_empty_cluster_has_its_own_message() -> None:
    outcome, message, _ = _schedule(scheduler_of([]), make_pod("p"))
    assert (outcome, message) == (Outcome.UNSCHEDULABLE, "no nodes available to schedule pods")


def test_an_error_sets_the_unschedulable_condition_too() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}
    outcome, message, actions = _schedule(scheduler_of([node()]), make_pod("p").spec(volumes=[volume]))
    assert outcome is Outcome.ERROR
    assert message == 'persistentvolumeclaim "missing" not found'
    assert any(isinstance(action, SetCondition) and action.reason == "Unschedulable" for action in actions)


def test_score_errors_of_all_nodes_are_reported_together() -> None:
    # A node selector that cannot be parsed makes NodeAffinityPriority fail on every node.
    wrong = {"key": "rack", "operator": "Gt", "values": ["x", "y"]}
    term = {"weight": 1, "preference": {"matchExpressions": [wrong]}}
    pod = make_pod("p").spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})
    found = cycle_of([node("n1"), node("n2")], pod, configured(policy=only_priority("NodeAffinityPriority")))
    text = "for 'Gt', 'Lt' operators, exactly one value is required"
    assert found.chosen == ""
    assert found.message == f"[{text}, {text}]"
    # A single feasible node is chosen without scoring.
    assert cycle_of([node("n1")], pod, configured(policy=only_priority("NodeAffinityPriority"))).chosen == "n1"


def test_preemption_nominates_evicts_and_emits_an_event() -> None:
    victim = make_pod("victim").req(cpu="4").priority(1).node("n1")
    scheduler = scheduler_of([node(), victim])
    lower = make_pod("lower").priority(10).nominated("n1")
    scheduler.handle(None, lower.obj(), 0)
    outcome, _, actions = _schedule(scheduler, make_pod("vip").req(cpu="2").priority(1000))
    assert outcome is Outcome.UNSCHEDULABLE
    nominations = [(action.pod.metadata.name, action.node_name) for action in actions if isinstance(action, Nominate)]
    assert nominations == [("vip", "n1"), ("lower", "")]
    assert [action.pod.metadata.name for action in actions if isinstance(action, Evict)] == ["victim"]
    (event,) = [action for action in actions if isinstance(action, Emit) and action.reason == "Preempted"]
    assert (event.type, event.note) == ("Normal", "Preempted by default/vip on node n1")
    assert [*scheduler.queue.nominator.on_node("n1").values()][-1] == "default/vip"


def test_preemption_can_be_disabled() -> None:
    configuration = replace(configured(), disable_preemption=True)
    scheduler = scheduler_of([node(), make_pod("victim").req(cpu="4").priority(1).node("n1")], configuration)
    _, _, actions = _schedule(scheduler, make_pod("vip").req(cpu="2").priority(1000))
    assert not any(isinstance(action, Evict | Nominate) for action in actions)


def test_a_useless_nomination_is_cleared() -> None:
    scheduler = scheduler_of([node().unschedulable()])
    _, _, actions = _schedule(scheduler, make_pod("p").priority(5).nominated("n1"))
    assert [action.node_name for action in actions if isinstance(action, Nominate)] == [""]
    _, _, actions = _schedule(scheduler_of([node().unschedulable()]), make_pod("p").priority(5))
    assert not any(isinstance(action, Nominate) for action in actions)


def test_a_failed_binding_emits_the_classic_event() -> None:
    scheduler = scheduler_of([node()])
    _schedule(scheduler, make_pod("p"))
    actions = scheduler.binding_failed(scheduler.pods["default/p"], "conflict", 0)
    (event,) = [action for action in actions if isinstance(action, Emit)]
    assert (event.reason, event.note) == ("FailedScheduling", "Binding rejected: conflict")
    assert scheduler.state.pods == {}
    assert len(scheduler.queue) == 1


# Events.


def _waiting() -> ClassicScheduler:
    scheduler = scheduler_of([node("n1", cpu="1")])
    _schedule(scheduler, make_pod("p").req(cpu="2"))
    assert len(scheduler.queue.unschedulable()) == 1
    return scheduler


def _changed(change: Callable[[NodeBuilder], object]) -> tuple[Item, Item]:
    new = node("n1", cpu="1")
    change(new)
    return node("n1", cpu="1"), new


def _condition(builder: NodeBuilder) -> None:
    builder.document()["status"]["conditions"] = [{"type": "Ready", "status": "True"}]


def _heartbeat(builder: NodeBuilder) -> None:
    builder.annotation({"beat": "1"})


@pytest.mark.parametrize(
    ("old", "new", "moves"),
    [
        pytest.param(None, node("n2"), True, id="a node is added"),
        pytest.param(node("n1", cpu="1"), None, False, id="a node is removed"),
        pytest.param(*_changed(lambda it: it.capacity(cpu="2")), True, id="capacity"),
        pytest.param(*_changed(lambda it: it.label(a="b")), True, id="labels"),
        pytest.param(*_changed(lambda it: it.taint("a")), True, id="taints"),
        pytest.param(*_changed(_condition), True, id="states of conditions"),
        pytest.param(*_changed(_heartbeat), False, id="any other field of a node"),
        pytest.param(None, make_pod("r").node("n1"), False, id="an assigned pod without effect on affinity"),
        pytest.param(
            None,
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default"}},
            True,
            id="a service",
        ),
        pytest.param(
            None,
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "p"},
            False,
            id="a storage class that binds at once",
        ),
        pytest.param(
            None,
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "s"},
                "provisioner": "p",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
            True,
            id="a storage class that waits",
        ),
        pytest.param(
            None,
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {}},
            True,
            id="a volume",
        ),
    ],
)
def test_helpful_node_changes_move_unschedulable_pods(old: Item | None, new: Item | None, moves: bool) -> None:
    scheduler = _waiting()
    scheduler.handle(None if old is None else typed(old), None if new is None else typed(new), 5 * SECOND)
    assert len(scheduler.queue.unschedulable()) == (0 if moves else 1)


def test_a_deleted_pod_moves_unschedulable_pods() -> None:
    scheduler = scheduler_of([node("n1", cpu="1")])
    running = make_pod("r").node("n1").obj()
    scheduler.handle(None, running, 0)
    _schedule(scheduler, make_pod("p").req(cpu="2"))
    scheduler.handle(running, None, 5 * SECOND)
    assert not scheduler.queue.unschedulable()


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(None, id="the nominated pod is deleted"),
        pytest.param(make_pod("vip"), id="its nomination is cleared"),
        pytest.param(make_pod("vip").nominated("n2"), id="it is nominated to another node"),
    ],
)
def test_the_end_of_a_nomination_moves_no_pods(new: PodBuilder | None) -> None:
    scheduler = _waiting()
    nominated = make_pod("vip").nominated("n1").obj()
    scheduler.handle(None, nominated, 0)
    scheduler.handle(nominated, None if new is None else new.obj(), 5 * SECOND)
    assert [queued.key for queued in scheduler.queue.unschedulable()] == ["default/p"]


# The end of a search.


def test_sampling_visits_half_of_a_large_cluster_and_continues_from_the_last_node() -> None:
    scheduler = assemble_classic_scheduler(configured(sample=50), pick=first_by_name)
    for number in range(400):
        scheduler.handle(None, node(f"n{number:03}").obj(), 0)
    evaluated = []
    for number in range(3):
        scheduler.handle(None, make_pod(f"p{number}").obj(), 0)
        before = scheduler.settings.sampling.next_start if scheduler.settings.sampling is not None else -1
        scheduler.schedule_one(0)
        evaluated.append(before)
    assert evaluated == [0, 200, 0]


def test_a_small_cluster_is_searched_completely() -> None:
    scheduler = assemble_classic_scheduler(configured(sample=50), pick=first_by_name)
    for number in range(99):
        scheduler.handle(None, node(f"n{number:03}").obj(), 0)
    scheduler.handle(None, make_pod("p").obj(), 0)
    scheduler.schedule_one(0)
    assert scheduler.settings.sampling is not None
    assert scheduler.settings.sampling.next_start == 0
