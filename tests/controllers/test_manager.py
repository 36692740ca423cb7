"""The manager: one reconcile at a time or all that are due, retries after failures, and bugs that are fatal or not."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.kubelet import KubeletOptions, VirtualKubelet
from bayplan.cluster.naming import NameGenerator
from bayplan.cluster.store import ChangeEvent, ObjectStore
from bayplan.controllers.controller import Controller, ControllerTools, PartialFailure, RejectedWrites
from bayplan.controllers.garbage_collector import StoreGarbageCollector
from bayplan.controllers.manager import ControllerManager
from bayplan.controllers.node_lifecycle import NodeLifecycleController
from bayplan.controllers.pod_factory import PodFactory
from bayplan.controllers.pod_gc import PodGarbageCollector
from bayplan.controllers.writer import AwaitsAnswers
from bayplan.objects.meta import ObjectMeta, OwnerReference
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.objects.workloads import ReplicaSet
from bayplan.sim.store_writer import StoreWriter


class Scripted(Controller):
    """Reconciles ReplicaSets: raises the given errors, in order, and then does nothing."""

    kind = ReplicaSet
    retry_delays_ns = (SECOND_NS // 4, 16 * SECOND_NS)

    def __init__(self, tools: ControllerTools, *problems: Exception | None) -> None:
        super().__init__(tools)
        self.problems = list(problems)
        self.calls: list[tuple[str, float]] = []
        self.reported: list[str] = []

    def reconcile(self, key: str, now_ns: int) -> int | None:
        self.calls.append((key, now_ns / SECOND_NS))
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem
        return None

    def failed(self, key: str, problem: InputError) -> None:
        self.reported.append(key)


class Watching(Scripted):
    """Watches ReplicaSets, and raises an exception at the events of those with certain names."""

    watches = (ReplicaSet,)
    follows_pods = True
    broken: tuple[str, ...] = ()

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        yield event.object.key
        if event.object.metadata.name in self.broken:
            raise ZeroDivisionError

    def pod_changed(self, key: str, event: ChangeEvent) -> None:
        if event.object.metadata.name in self.broken:
            raise ZeroDivisionError


def controller_tools(store: ObjectStore) -> ControllerTools:
    writer = StoreWriter(store, VirtualKubelet(store, KubeletOptions()))
    names = NameGenerator(RandomStreams(1).stream("names"))
    return ControllerTools(store, writer, PodFactory(store, writer, names, PodAdmission(store)))


def managed(*problems: Exception | None, retries: bool) -> tuple[ControllerManager, Scripted, ObjectStore]:
    store = ObjectStore(RandomStreams(1).stream("uids"))
    tools = controller_tools(store)
    controller = Scripted(tools, *problems)
    pod_gc, node_lifecycle = PodGarbageCollector(tools), NodeLifecycleController(tools)
    manager = ControllerManager(
        store,
        [controller],
        others=(node_lifecycle, pod_gc),
        garbage_collector=StoreGarbageCollector(tools),
        pod_gc=pod_gc,
        node_lifecycle=node_lifecycle,
        admission=PodAdmission(store),
        retries=retries,
    )
    for name in ("a", "b"):
        store.add(ReplicaSet(metadata=ObjectMeta(name=name, namespace="n")), 0)
    manager.follow(0)
    return manager, controller, store


REFUSED = InputError("n/a", wanted="something else")
AWAITS = AwaitsAnswers("n/a", "a webhook is asked")


@pytest.mark.parametrize(
    ("problems", "want"),
    [
        pytest.param((), [("n/a", 0.0), ("n/b", 0.0)], id="no failure"),
        pytest.param((REFUSED,), [("n/a", 0.0), ("n/b", 0.0), ("n/a", 0.25)], id="a failure is tried again"),
        pytest.param(
            (REFUSED, None, REFUSED, REFUSED),
            [("n/a", 0.0), ("n/b", 0.0), ("n/a", 0.25), ("n/a", 0.75), ("n/a", 1.75)],
            id="with growing delays",
        ),
        pytest.param(
            (AWAITS, None, AWAITS),
            [("n/a", 0.0), ("n/b", 0.0), ("n/a", 0.02), ("n/a", 0.04)],
            id="a response arrives soon",
        ),
        pytest.param(
            (ZeroDivisionError(), None, ZeroDivisionError(), REFUSED),
            [("n/a", 0.0), ("n/b", 0.0), ("n/a", 0.25), ("n/a", 0.75), ("n/a", 1.75)],
            id="a bug is tried again, too, and other objects are reconciled",
        ),
    ],
)
def test_failed_reconciles_are_retried_with_backoff(
    problems: tuple[Exception | None, ...], want: list[tuple[str, float]], caplog: pytest.LogCaptureFixture
) -> None:
    manager, controller, _ = managed(*problems, retries=True)
    with caplog.at_level(logging.CRITICAL):
        while (wakeup_ns := manager.next_wakeup()) is not None:
            assert manager.step(wakeup_ns)
    assert controller.calls == want
    assert controller.reported == ["n/a"] * sum(isinstance(each, InputError) for each in problems)
    assert manager.failures == {}
    assert manager.problems == {}


def test_an_unexpected_exception_is_a_problem_until_the_object_is_reconciled(caplog: pytest.LogCaptureFixture) -> None:
    manager, _, _ = managed(ZeroDivisionError(), retries=True)
    with caplog.at_level(logging.CRITICAL):
        assert manager.step(0)
    assert [*manager.problems] == ["Scripted n/a"]
    while (wakeup_ns := manager.next_wakeup()) is not None:
        assert manager.step(wakeup_ns)
    assert manager.problems == {}


def test_a_step_is_one_reconcile() -> None:
    manager, controller, _ = managed(retries=True)
    assert [manager.step(0) for _ in range(3)] == [True, True, False]
    assert len(controller.calls) == 2


def test_a_simulation_retries_a_failed_reconcile_only_after_a_change() -> None:
    manager, controller, store = managed(REFUSED, retries=False)
    manager.run(0)
    assert controller.calls == [("n/a", 0.0), ("n/b", 0.0)]
    assert [*manager.failures] == ["ReplicaSet n/a"]
    assert manager.next_wakeup() is None
    item = store.get(ReplicaSet, "n/a")
    assert item is not None
    store.remove(ReplicaSet, "n/a")
    manager.follow(SECOND_NS)
    manager.run(SECOND_NS)
    assert (controller.calls[2:], manager.failures) == ([("n/a", 1.0)], {})


def test_an_unexpected_exception_ends_a_simulation() -> None:
    manager, _, _ = managed(ZeroDivisionError(), retries=False)
    with pytest.raises(ZeroDivisionError):
        manager.run(0)


def test_a_requested_reconcile_is_due_immediately() -> None:
    manager, controller, _ = managed(retries=True)
    manager.run(0)
    manager.enqueue(controller, "n/b", SECOND_NS)
    assert manager.next_wakeup() == SECOND_NS
    assert manager.step(SECOND_NS)
    assert controller.calls[2:] == [("n/b", 1.0)]


def test_a_failure_lasts_until_the_controller_that_failed_succeeds() -> None:
    manager, controller, store = managed(None, None, REFUSED, retries=True)
    manager.run(0)
    other = Scripted(controller_tools(store))
    for each in (controller, other):
        manager.enqueue(each, "n/a", SECOND_NS)
        assert manager.step(SECOND_NS)
    assert [*manager.failures] == ["ReplicaSet n/a"]


def test_a_reconcile_follows_rejected_writes_at_once_only_if_others_succeeded() -> None:
    results = []
    for succeeds in (True, False):
        rejected = RejectedWrites()
        if succeeds:
            with rejected:
                pass
        with rejected:
            raise REFUSED
        results += [rejected.result(again_ns, 5) for again_ns in (None, 5, 6)]
    assert results == [PartialFailure(REFUSED, again_ns) for again_ns in (None, 5, 6, None, None, 6)]


@pytest.mark.parametrize("retries", [True, False])
def test_an_exception_at_an_event_stops_only_simulations(retries: bool, caplog: pytest.LogCaptureFixture) -> None:
    store = ObjectStore(RandomStreams(1).stream("uids"))
    tools = controller_tools(store)
    owner, first, second = Watching(tools), Watching(tools), Watching(tools)
    owner.broken = first.broken = ("a",)
    pod_gc, node_lifecycle = PodGarbageCollector(tools), NodeLifecycleController(tools)
    manager = ControllerManager(
        store,
        [owner],
        others=(node_lifecycle, pod_gc, first, second),
        garbage_collector=StoreGarbageCollector(tools),
        pod_gc=pod_gc,
        node_lifecycle=node_lifecycle,
        admission=PodAdmission(store),
        retries=retries,
    )
    reference = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="a", uid="u", controller=True)
    store.add(Pod(metadata=ObjectMeta(name="a", namespace="n", owner_references=(reference,))), 0)
    for name in ("a", "b"):
        store.add(ReplicaSet(metadata=ObjectMeta(name=name, namespace="n")), 0)
    if not retries:
        with pytest.raises(ZeroDivisionError):
            manager.follow(0)
        return
    manager.follow(0)
    assert list(manager.problems) == ["Watching n/a"]
    assert {each.getMessage() for each in caplog.records} == {"controller Watching n/a"}
    while manager.step(0):
        pass
    assert [[key for key, _ in each.calls] for each in (owner, first, second)] == [["n/a", "n/b"]] * 3
    assert manager.problems == {}


def test_a_dependent_of_an_owner_that_was_added_again_stays() -> None:
    """Manifests and dumps may contain uids, so an owner may be deleted and added with one uid."""
    manager, _, store = managed(retries=False)
    owner = ReplicaSet(metadata=ObjectMeta(name="owner", namespace="n", uid="u"))
    store.add(owner, 0)
    store.remove(ReplicaSet, "n/owner")
    store.add(owner, 0)
    manager.follow(0)
    reference = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="owner", uid="u")
    metadata = ObjectMeta(name="c", namespace="n", owner_references=(reference,), finalizers=("a/b",))
    store.add(PersistentVolumeClaim(metadata=metadata), 0)
    manager.follow(0)
    manager.run(0)
    claim = store.get(PersistentVolumeClaim, "n/c")
    assert claim is not None
    assert claim.metadata.deletion_timestamp is None
