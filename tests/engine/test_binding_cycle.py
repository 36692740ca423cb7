"""The steps after the choice of a node that involve host and plugins: confirmed and refused bindings, permits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ASSIGNED_POD_DELETE
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import PROCEED, PermitPlugin, PreBindPlugin, ReservePlugin
from bayplan.framework.status import SKIP, SUCCESS, Code, Status, unschedulable
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolume
from bayplan.testing import make_pod
from tests.engine.recorders import (
    SECOND,
    Log,
    as_tuples,
    confirm,
    make_recorder,
    make_scheduler,
    on_nodes,
    small_node,
    waits,
)

P = "default/p"
CONFLICT = 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n2"'


def bound(**options: Any) -> tuple[Scheduler, Log]:
    """Return a scheduler that has asked its host to bind pod p to n1."""
    log: Log = []
    scheduler = make_scheduler(make_recorder("A", log), in_tree=("NodeResourcesFit",), nodes=("n1",), **options)
    scheduler.handle(None, make_pod("p").req(cpu="2").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert as_tuples(report.actions) == [("bind", "p", "n1")]
    return scheduler, log


def test_a_confirmed_binding_emits_one_scheduled_event() -> None:
    scheduler, _ = bound()
    note = "Successfully assigned default/p to n1"
    assert confirm(scheduler, "p", "n1", SECOND) == [("event", "p", "Normal Scheduled Binding", note)]
    pod = scheduler.pods[P]
    assert scheduler.handle(pod, replace(pod, metadata=replace(pod.metadata, labels={"a": "b"})), SECOND) == []


def test_a_pod_bound_to_a_different_node_gets_no_event_and_no_post_bind() -> None:
    scheduler, log = bound()
    scheduler.handle(None, small_node("n2"), SECOND)
    assert confirm(scheduler, "p", "n2", SECOND) == []
    assert on_nodes(scheduler) == {"p": "n2"}
    assert ("A", "post_bind", "p", "n1") not in log


@pytest.mark.parametrize(
    ("how", "message"),
    [
        pytest.param({}, f'running Bind plugin "DefaultBinder": {CONFLICT}', id="a conflict"),
        pytest.param(
            {"plugin": "VolumeBinding", "point": "PreBind"},
            f'running PreBind plugin "VolumeBinding": {CONFLICT}',
            id="an update before it",
        ),
        pytest.param({"plugin": ""}, CONFLICT, id="an extender, whose error is reported unchanged"),
    ],
)
def test_a_failed_binding_is_undone_and_the_pod_is_requeued(how: dict[str, str], message: str) -> None:
    scheduler, log = bound()
    actions = scheduler.binding_failed(scheduler.pods[P], CONFLICT, SECOND, **how)
    assert as_tuples(actions) == [
        ("event", "p", "Warning FailedScheduling Scheduling", message),
        ("condition", "p", "SchedulerError", message),
    ]
    assert ("A", "unreserve", "p", "n1") in log
    assert ("A", "post_bind", "p", "n1") not in log
    assert on_nodes(scheduler) == {}
    assert scheduler.assumed == {}
    assert waits(scheduler) == {"p": "backoff"}
    assert [record.message for record in scheduler.records] == ["", message]
    # A second report of the same failure has no effect.
    assert scheduler.binding_failed(scheduler.pods[P], CONFLICT, SECOND) == []


def test_a_failed_binding_of_an_earlier_pod_of_the_same_name_is_ignored() -> None:
    scheduler, _ = bound()
    assert scheduler.binding_failed(make_pod("p").uid("another").obj(), CONFLICT, SECOND) == []
    assert list(scheduler.bindings.pending) == [P]
    assert scheduler.binding_failed(scheduler.pods[P], CONFLICT, SECOND) != []
    assert scheduler.bindings.pending == {}


@pytest.mark.parametrize(
    ("binds_skipped_pods", "answer", "called"),
    [
        pytest.param(True, SKIP, True, id="by default, even if PreFilter skipped the pod"),
        pytest.param(False, SKIP, False, id="not if the plugin declares that it has nothing to do then"),
        pytest.param(False, PROCEED, True, id="if PreFilter did not skip the pod"),
    ],
)
def test_reserve_and_pre_bind_of_a_plugin_run(*, binds_skipped_pods: bool, answer: object, called: bool) -> None:
    log: Log = []
    recorder = make_recorder("A", log, {"pre_filter": answer})
    recorder.binds_skipped_pods = binds_skipped_pods
    scheduler = make_scheduler(recorder, nodes=("n1",))
    scheduler.handle(None, make_pod("p").obj(), 0)
    scheduler.schedule_one(0)
    scheduler.binding_failed(scheduler.pods[P], CONFLICT, SECOND)
    points = [point for _, point, *_ in log if point in ("reserve", "pre_bind", "unreserve")]
    assert points == (["reserve", "pre_bind", "unreserve"] if called else [])


class TakesNothing(ReservePlugin[None]):
    name = "TakesNothing"
    binds_skipped_pods = False

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS


class TakesSomething(TakesNothing):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return unschedulable()


class Described(TakesNothing):
    name = "Described"


class OnlyPreBind(PreBindPlugin[None]):
    def updates(self, state: CycleState) -> list[KubernetesObject]:
        return []


class AlsoPreBind(OnlyPreBind, TakesNothing):
    """Has a method of a base that does not declare it."""


def test_a_declaration_about_reserve_and_pre_bind_does_not_hold_for_methods_of_a_subclass() -> None:
    kinds = (TakesNothing, Described, TakesSomething, AlsoPreBind)
    assert [kind.binds_skipped_pods for kind in kinds] == [False, False, True, True]


def test_pods_that_wait_at_permit_are_rolled_back_by_the_plugins_of_their_own_cycle() -> None:
    log: Log = []
    recorder = make_recorder("A", log, {"pre_filter": SKIP, "permit": (Status(Code.WAIT), SECOND)})
    recorder.binds_skipped_pods = False
    scheduler = make_scheduler(recorder, in_tree=("NodeResourcesFit",), nodes=("n1",))
    scheduler.handle(None, make_pod("p").req(cpu="1m").obj(), 0)
    scheduler.schedule_one(0)
    # The plan is adapted to a pod that PreFilter does not skip.
    recorder.says = {"permit": (Status(Code.WAIT), SECOND)}
    scheduler.handle(None, make_pod("q").req(cpu="2m").obj(), 0)
    scheduler.schedule_one(0)
    for name in "pq":
        scheduler.reject_waiting_pod(f"default/{name}", unschedulable("no"), 0)
    assert [(point, name) for _, point, name, *_ in log if point in ("reserve", "unreserve")] == [
        ("reserve", "q"),
        ("unreserve", "q"),
    ]


def test_a_failed_binding_wakes_other_pending_pods() -> None:
    log: Log = []
    hears = make_recorder("A", log, {}, [(ASSIGNED_POD_DELETE, None)])
    scheduler = make_scheduler(hears, in_tree=("NodeResourcesFit",), nodes=("n1",))
    for name in "pq":
        scheduler.handle(None, make_pod(name).req(cpu="2").obj(), 0)
        scheduler.schedule_one(0)
    assert waits(scheduler) == {"q": "unschedulable"}
    scheduler.binding_failed(scheduler.pods[P], "no", SECOND)
    assert waits(scheduler)["q"] == "backoff"


def test_a_deleted_pod_is_not_requeued_when_its_binding_fails() -> None:
    scheduler, _ = bound()
    pod = scheduler.pods.pop(P)
    note = 'running Bind plugin "DefaultBinder": pods "p" not found'
    assert as_tuples(scheduler.binding_failed(pod, 'pods "p" not found', SECOND))[0][3] == note
    assert waits(scheduler) == {}
    assert scheduler.queue.in_flight() == []


def test_a_pod_with_pre_bind_writes_is_nominated_before_it_is_bound() -> None:
    class Writes(PreBindPlugin[None]):
        name = "Writes"

        def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
            return SUCCESS

        def updates(self, state: CycleState) -> list[KubernetesObject]:
            return [PersistentVolume(metadata=ObjectMeta(name="pv"))]

    scheduler = make_scheduler(Writes, nodes=("n1",))
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    kinds = [type(action).__name__ for action in report.actions]
    assert kinds == ["Nominate", "Update", "Bind"]


@pytest.mark.parametrize(
    ("nominated", "want"),
    [
        pytest.param("n1", [], id="a pod that is nominated there already"),
        pytest.param("n2", [("nominate", "p", "n1")], id="a pod that was nominated elsewhere"),
    ],
)
def test_an_existing_nomination_is_not_requested_again(nominated: str, want: list[tuple[str, ...]]) -> None:
    log: Log = []
    scheduler = make_scheduler(make_recorder("A", log, {"permit": (Status(Code.WAIT), SECOND)}), nodes=("n1",))
    pod = make_pod("p").obj()
    scheduler.handle(None, replace(pod, status=replace(pod.status, nominated_node_name=nominated)), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert as_tuples(report.actions) == want


def test_a_pod_at_permit_is_not_nominated_if_the_gate_is_off() -> None:
    gates = FeatureGates.from_mapping({"NominatedNodeNameForExpectation": False})
    log: Log = []
    recorder = make_recorder("A", log, {"permit": (Status(Code.WAIT), SECOND)})
    scheduler = make_scheduler(recorder, nodes=("n1",), feature_gates=gates)
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.actions == ()


# Plugins that allow or reject waiting pods.


class Together(PermitPlugin[None], ReservePlugin[None]):
    """Lets pods wait at Permit, except the pod ``last``; calls `act` when that arrives, and `react` in Unreserve."""

    name = "Together"
    act: Callable[[Together], None]
    react: Callable[[Together], None]

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
        if pod.metadata.name != "last":
            return Status(Code.WAIT), 10 * SECOND
        self.act()  # type: ignore[call-arg, misc]  # A function in a class attribute is a method.
        return SUCCESS, 0

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        state.pods_to_activate = tuple(self.handle.pods[key] for key in self.handle.pods if key.endswith("asleep"))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.react()  # type: ignore[call-arg, misc]  # As above.

    def waiting(self) -> list[str]:
        assert self.handle.waiting_pods is not None
        return [waiting.pod.metadata.name for waiting in self.handle.waiting_pods]


def allow_all(plugin: Together) -> None:
    assert plugin.handle.waiting_pods is not None
    for waiting in plugin.handle.waiting_pods:
        assert waiting.pending_plugins == ("Together",)
        assert waiting.node_name == "n1"
        waiting.allow("Together")
        waiting.allow("Together")


def reject_all(plugin: Together) -> None:
    assert plugin.handle.waiting_pods is not None
    for waiting in plugin.handle.waiting_pods:
        waiting.reject("Together", "not together")


def nothing(plugin: Together) -> None:
    pass


def together(
    act: Callable[[Together], None], react: Callable[[Together], None], *names: str
) -> tuple[Scheduler, list[list[tuple[str, ...]]]]:
    plugin = type("Together", (Together,), {"act": act, "react": react})
    scheduler = make_scheduler(plugin, nodes=("n1",))
    found = []
    for name in names:
        scheduler.handle(None, make_pod(name).obj(), 0)
        report = scheduler.schedule_one(0)
        assert report is not None
        found.append([each for each in as_tuples(report.actions) if each[0] != "nominate"])
    return scheduler, found


def test_a_plugin_can_allow_waiting_pods() -> None:
    scheduler, found = together(allow_all, nothing, "a", "b", "last")
    assert found == [[], [], [("bind", "last", "n1"), ("bind", "a", "n1"), ("bind", "b", "n1")]]
    assert len(scheduler.waiting_pods) == 0


def test_a_plugin_can_reject_waiting_pods() -> None:
    scheduler, found = together(reject_all, nothing, "a", "last")
    message = "0/1 nodes are available: 1 not together."
    assert found[1] == [
        ("bind", "last", "n1"),
        ("event", "a", "Warning FailedScheduling Scheduling", message),
        ("condition", "a", "Unschedulable", message),
    ]
    assert waits(scheduler) == {"a": "unschedulable"}
    assert on_nodes(scheduler) == {"last": "n1"}


def test_a_permit_timeout_lets_the_plugin_reject_the_other_waiting_pods() -> None:
    scheduler, _ = together(nothing, reject_all, "a", "b", "c")
    messages = [each[3] for each in as_tuples(scheduler.tick(10 * SECOND)) if each[0] == "condition"]
    late = "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Together."
    assert messages == [late, *["0/1 nodes are available: 1 not together."] * 2]
    assert len(scheduler.waiting_pods) == 0
    assert on_nodes(scheduler) == {}


def test_deleting_a_waiting_pod_lets_the_plugin_reject_the_others() -> None:
    scheduler, _ = together(nothing, reject_all, "a", "b")
    scheduler.handle(scheduler.pods["default/a"], None, SECOND)
    assert len(scheduler.waiting_pods) == 0
    # The first pod's reservation is released, an event that moves the second pod out of the unschedulable pods.
    assert waits(scheduler) == {"b": "backoff"}


def test_only_the_first_decision_about_a_waiting_pod_counts() -> None:
    scheduler, _ = together(nothing, nothing, "a")
    [waiting] = scheduler.waiting_pods
    waiting.reject("Together", "first")
    waiting.reject("Together", "second")
    waiting.allow("Together")
    # The rejection is handled at once, although the timeout of the permit is ten seconds.
    assert scheduler.next_wakeup_ns(SECOND) == SECOND
    messages = [each[3] for each in as_tuples(scheduler.tick(SECOND)) if each[0] == "condition"]
    assert messages == ["0/1 nodes are available: 1 first."]


def test_pods_activated_by_a_plugin_move_to_the_active_queue() -> None:
    log: Log = []
    recorder = make_recorder("A", log, {"refuses": ("n1",)}, [(ASSIGNED_POD_DELETE, None)])
    scheduler = make_scheduler(recorder, Together, nodes=("n1",))
    scheduler.handle(None, make_pod("asleep").obj(), 0)
    scheduler.schedule_one(0)
    assert waits(scheduler) == {"asleep": "unschedulable"}
    recorder.says.clear()
    scheduler.handle(None, make_pod("p").obj(), 0)
    scheduler.schedule_one(0)
    assert waits(scheduler) == {"asleep": "active"}
