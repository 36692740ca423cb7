"""A scheduler on its own thread: its inputs and outputs, and faults of concurrency that must not happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from bayplan.base.clock import Clock
from bayplan.base.errors import EngineBusy, InputError
from bayplan.cluster.store import ADDED, ChangeEvent
from bayplan.engine.actions import Action, Bind, CycleReport
from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import Scheduler
from bayplan.live import engine_status, scheduler_replacement, scheduler_thread
from bayplan.live.decision_store import DecisionStore
from bayplan.live.engine_recovery import EngineRecovery
from bayplan.live.scheduler_thread import SchedulerThread
from bayplan.objects.pod import Pod
from bayplan.testing import make_node, make_pod
from tests.live.hosts import SECOND, Cluster, make_faulty_plugin, small_cluster, small_pod


def test_feasible_pods_are_bound_and_the_rest_is_unschedulable() -> None:
    cluster = small_cluster()
    cluster.add(*(small_pod(f"p{number}") for number in range(10)))
    cluster.run()
    assert sorted(filter(None, cluster.nodes_of().values())) == ["n0"] * 4 + ["n1"] * 4
    status = cluster.host.status()
    assert (status.decisions, status.scheduled, status.unschedulable) == (10, 8, 2)
    assert status.queue == {"active": 0, "backoff": 0, "unschedulable": 2, "gated": 0}
    cluster.check()


def test_pods_are_scheduled_only_by_steps_while_the_clock_is_paused() -> None:
    cluster = small_cluster()
    cluster.clock.jump(cluster.clock.now_ns() + 1)
    cluster.add(small_pod("a"), small_pod("b"))
    while cluster.host.run_slice():
        pass
    assert not cluster.actions
    assert cluster.host.status().paused
    assert cluster.host.status().queue["active"] == 2
    assert cluster.host.step_decision().result(0) is True
    assert [action.pod.metadata.name for action in cluster.actions if isinstance(action, Bind)] == ["a"]
    assert cluster.host.step_decision().result(0) is True
    assert cluster.host.step_decision().result(0) is False


def test_a_step_can_be_cancelled_before_it_runs() -> None:
    cluster = small_cluster()
    cluster.host.start()
    blocked, go_on = threading.Event(), threading.Event()

    def busy(scheduler: Scheduler) -> bool:
        blocked.set()
        return go_on.wait(30)

    cluster.host.submit(busy)
    assert blocked.wait(30)
    assert cluster.host.step_decision().cancel()
    go_on.set()
    assert cluster.host.step_decision().result(30) is False
    cluster.host.stop()
    assert not cluster.host.status().engine_failures


def test_a_time_step_advances_to_the_next_timer() -> None:
    cluster = small_cluster()
    cluster.refuses.add("default/p")
    cluster.add(small_pod("p"))
    cluster.run()
    before = cluster.clock.now_ns()
    cluster.refuses.clear()
    due_ns = cluster.host.call(cluster.host.next_instant_of)
    assert due_ns is not None
    cluster.clock.jump(due_ns)
    cluster.host.schedule_current_instant()
    cluster.run()
    assert cluster.clock.now_ns() > before
    assert cluster.nodes_of() == {"p": "n0"}
    assert cluster.host.status().binding_failures == 1


def test_a_refused_binding_is_retried_after_backoff() -> None:
    cluster = small_cluster()
    cluster.refuses.add("default/p")
    cluster.add(small_pod("p"))
    cluster.run()
    assert cluster.messages_of("p")[-1] == 'running Bind plugin "DefaultBinder": the cluster refuses it'
    assert cluster.nodes_of() == {"p": ""}
    cluster.refuses.clear()
    cluster.pass_seconds(2)
    assert cluster.nodes_of() == {"p": "n0"}
    cluster.check()


def test_a_refused_binding_of_another_generation_is_ignored() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("p"))
    cluster.host.schedule_current_instant()
    cluster.host.binding_failed(small_pod("p"), "too late", generation=7)
    cluster.run()
    assert cluster.nodes_of() == {"p": "n0"}


@pytest.mark.parametrize(
    ("generation", "want"),
    [
        pytest.param(None, 2, id="an event without a version belongs to the current version"),
        pytest.param(0, 2, id="an event of the current version causes a retry"),
        pytest.param(7, 1, id="an event of another version is ignored"),
    ],
)
def test_a_refused_eviction_of_another_generation_is_ignored(generation: int | None, want: int) -> None:
    cluster = small_cluster()
    big = small_pod("big", cpu="100")
    cluster.add(big)
    cluster.run()
    cluster.host.preemption_failed(big, generation=generation)
    cluster.run()
    assert cluster.host.status().decisions == want


def test_pods_of_other_schedulers_are_ignored() -> None:
    cluster = small_cluster()
    cluster.add(make_pod("theirs").scheduler("outside").req(cpu="1").obj(), small_pod("ours"))
    cluster.run()
    assert cluster.nodes_of() == {"theirs": "", "ours": "n0"}
    assert sum(cluster.host.status().queue.values()) == 0


class Breakable(Scheduler):
    """A scheduler whose methods can be replaced; those of a compiled class can't."""

    def handle(self, old: Any, new: Any, now_ns: int) -> list[Action]:
        return super().handle(old, new, now_ns)

    def schedule_one(self, now_ns: int) -> CycleReport | None:
        return super().schedule_one(now_ns)


@pytest.fixture(autouse=True)
def _schedulers_are_breakable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.engine.assemble.Scheduler", Breakable)


class TestReplacing:
    def test_replace_retries_pending_pods_and_continues_records(self) -> None:
        cluster = small_cluster()
        cluster.add(small_pod("big", cpu="50"), small_pod("p"))
        cluster.run()
        cluster.host.replace(cluster.make)
        cluster.run()
        assert cluster.host.generation == 1
        records = [cluster.decisions[number] for number in cluster.decisions.numbers_of("default/big")]
        assert [(record.attempt, record.outcome) for record in records] == [(1, 1), (2, 1)]
        assert cluster.nodes_of() == {"big": "", "p": "n0"}
        cluster.check()

    def test_replace_delivers_earlier_actions_in_the_old_generation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster = small_cluster()
        host = cluster.host
        taken: list[tuple[str, int]] = []

        def take(actions: Sequence[Action]) -> None:
            taken.extend((type(action).__name__, host.generation) for action in actions)
            cluster.actions.extend(actions)

        monkeypatch.setattr(host, "_on_actions", take)
        cluster.add(small_pod("p"))
        host.schedule_current_instant()
        taken.clear()
        # The failed binding is handled in the same turn in which the scheduler is replaced.
        host.binding_failed(small_pod("p"), "no")
        host.replace(cluster.make)
        assert ("SetCondition", 0) in taken
        assert host.generation == 1
        assert all(generation == 1 for name, generation in taken if name == "Bind")

    def test_a_replacement_that_fails_on_one_object_succeeds_without_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster = small_cluster()
        cluster.add(small_pod("worst"), small_pod("p"))
        cluster.run()
        handle = Breakable.handle

        def broken(self: Breakable, old: Any, new: Any, now_ns: int) -> list[Action]:
            if new is not None and new.metadata.name == "worst":
                raise ZeroDivisionError
            return handle(self, old, new, now_ns)

        monkeypatch.setattr(Breakable, "handle", broken)
        cluster.host.replace(cluster.make)
        assert [it.doing for it in cluster.host.status().engine_failures] == ["replacing the scheduler"]
        assert cluster.host.call(lambda scheduler: len(scheduler.pods)) == 1

    @pytest.mark.parametrize("threaded", [False, True], ids=["at once", "on a thread"])
    def test_a_replacement_that_keeps_failing_is_reported(
        self, monkeypatch: pytest.MonkeyPatch, threaded: bool
    ) -> None:
        cluster = small_cluster()

        def broken(*arguments: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(scheduler_thread, "refill", broken)
        if threaded:
            cluster.host.start()
        with pytest.raises(EngineBusy, match="failed on the objects of the cluster: ZeroDivisionError: a bug"):
            cluster.host.replace(cluster.make, timeout=30)
        cluster.host.stop()

    def test_a_replacement_that_cannot_be_created_changes_nothing(self) -> None:
        cluster = small_cluster()

        def make() -> Scheduler:
            raise InputError("profile", got="nonsense")

        with pytest.raises(InputError, match="nonsense"):
            cluster.host.replace(make)
        cluster.add(small_pod("p"))
        cluster.run()
        assert (cluster.host.generation, cluster.nodes_of()) == (0, {"p": "n0"})


class TestBugsOfOurs:
    def broken(self, monkeypatch: pytest.MonkeyPatch, victim: str, method: str = "schedule_one") -> Cluster:
        cluster = small_cluster()
        working = getattr(Breakable, method)

        def fails(scheduler: Breakable, *arguments: object) -> object:
            if method == "handle":
                old, new, _ = arguments
                if isinstance(new, Pod) and new.metadata.name == victim and not old:
                    raise ZeroDivisionError("in the engine")
                return working(scheduler, *arguments)
            waiting = scheduler.queue.active()
            if waiting and waiting[0].pod.metadata.name == victim:
                scheduler.queue.pop()
                raise ZeroDivisionError("in the engine")
            return working(scheduler, *arguments)

        monkeypatch.setattr(Breakable, method, fails)
        return cluster

    def test_an_engine_exception_in_one_cycle_is_reported_and_other_pods_are_scheduled(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster = self.broken(monkeypatch, "worst")
        cluster.add(small_pod("a"), small_pod("worst"), small_pod("b"))
        cluster.run()
        assert cluster.nodes_of() == {"a": "n0", "worst": "", "b": "n1"}
        (failure,) = cluster.host.status().engine_failures
        assert (failure.doing, failure.exception) == ("scheduling", "ZeroDivisionError: in the engine")
        assert "test_scheduler_thread.py" in failure.traceback
        assert cluster.messages_of("worst") == ["internal error: ZeroDivisionError: in the engine"]
        assert cluster.host.generation == 1
        monkeypatch.undo()
        cluster.pass_seconds(3)
        assert cluster.nodes_of()["worst"]
        cluster.check()

    def test_an_object_that_breaks_the_engine_is_quarantined(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bayplan.live.engine_recovery.MIN_REST_SECONDS", 0.0)
        cluster = self.broken(monkeypatch, "worst", "handle")
        cluster.add(small_pod("a"), small_pod("worst"), small_pod("b"))
        cluster.run()
        cluster.run()
        assert cluster.nodes_of() == {"a": "n0", "worst": "", "b": "n1"}
        assert [it.doing for it in cluster.host.status().engine_failures] == [
            "processing changes and requests",
            "rebuilding the scheduler",
        ]
        monkeypatch.undo()
        cluster.add(small_pod("worst"))
        cluster.run()
        assert cluster.nodes_of()["worst"]
        cluster.check()

    def test_an_exception_in_on_actions_fails_the_bindings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster = small_cluster()

        def broken(actions: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(cluster.host, "_on_actions", broken)
        cluster.add(small_pod("p"))
        cluster.run()
        assert cluster.messages_of("p")[-1] == 'running Bind plugin "DefaultBinder": internal error'
        monkeypatch.undo()
        cluster.pass_seconds(2)
        assert cluster.nodes_of() == {"p": "n0"}
        cluster.check()

    def test_an_engine_without_a_factory_stops_on_an_internal_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster = self.broken(monkeypatch, "worst", "handle")
        host = SchedulerThread(cluster.make(), Clock(paused=True), lambda actions: None)
        host.post([ChangeEvent(ADDED, Pod, None, small_pod("worst"), 1)])
        host.run_slice()
        assert host.status().broken
        assert host.step_decision().result(0) is False

    def test_recovery_delays_double_after_repeated_failures(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 100.0
        monkeypatch.setattr("bayplan.live.engine_recovery.time.monotonic", lambda: now)
        recovery, rests = EngineRecovery(Clock()), []
        for _ in range(12):
            recovery.rest()
            rests.append(round(recovery.seconds_left(), 1))
            now += recovery.seconds_left()
            recovery.end()
        assert rests[:5] == [0.0, 0.1, 0.2, 0.4, 0.8]
        assert rests[-1] == 30.0
        now += 61
        recovery.rest()
        assert recovery.seconds_left() == 0.0


class TestThreads:
    def started(self, cluster: Cluster) -> SchedulerThread:
        cluster.clock.resume()
        cluster.host.start()
        return cluster.host

    def until(self, condition: object, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            assert time.monotonic() < end
            time.sleep(0.005)

    def test_the_thread_schedules_posted_pods_and_stops(self) -> None:
        cluster = small_cluster()
        host = self.started(cluster)
        cluster.add(*(small_pod(f"p{number}") for number in range(6)))
        self.until(lambda: host.status().decisions == 6)
        assert host.call(lambda scheduler: len(scheduler.assumed)) == 6
        host.stop()
        assert not [thread for thread in threading.enumerate() if thread.name == "bayplan-engine"]

    def test_a_timed_out_question_names_the_running_plugin(self) -> None:
        plugin = make_faulty_plugin("reserve", "wait")
        cluster = small_cluster(plugin, deadline_seconds=3600.0)
        host = self.started(cluster)
        cluster.add(small_pod("bad"))
        # The plugin's other methods, which are called earlier, return at once.
        self.until(lambda: getattr(host.status().running_plugin, "point", "") == "Reserve")
        assert host.status().busy_since_ns is not None
        with pytest.raises(EngineBusy, match="it waits for Reserve of plugin Trouble"):
            host.call(len, timeout=0.05)  # type: ignore[arg-type]
        plugin.released.set()
        assert host.call(lambda scheduler: 7, timeout=30) == 7
        host.stop()

    def test_resuming_the_clock_wakes_the_engine(self) -> None:
        cluster = small_cluster()
        host = cluster.host
        cluster.clock.jump(cluster.clock.now_ns() + 1)
        host.start()
        cluster.add(small_pod("p"))
        self.until(lambda: host.status().queue.get("active") == 1)
        cluster.clock.resume()
        self.until(lambda: any(isinstance(action, Bind) for action in cluster.actions))
        host.stop()

    def test_the_status_is_published_at_intervals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster = small_cluster()
        host = self.started(cluster)
        self.until(lambda: host.status().now_ns > 0)
        monkeypatch.setattr(engine_status, "PUBLISH_SECONDS", 60.0)
        cluster.add(small_pod("p"))
        self.until(lambda: any(isinstance(action, Bind) for action in cluster.actions))
        assert host.status().decisions == 0
        monkeypatch.undo()
        # The thread wakes to publish what it has done.
        self.until(lambda: host.status().decisions == 1)
        host.stop()

    def test_replace_waits_for_pending_bindings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scheduler_replacement, "DRAIN_SECONDS", 30.0)
        cluster = small_cluster()
        host = self.started(cluster)
        cluster.add(small_pod("p"))
        self.until(lambda: host.status().pending_bindings == 1)
        replacing = threading.Thread(target=host.replace, args=(cluster.make,))
        replacing.start()
        time.sleep(0.1)
        assert host.generation == 0
        cluster._bind(next(action for action in cluster.actions if isinstance(action, Bind)))
        replacing.join(10)
        assert host.generation == 1
        assert host.call(lambda scheduler: [*scheduler.state.pods]) == ["default/p"]
        host.stop()

    def test_timers_run_in_clock_time(self) -> None:
        cluster = small_cluster()
        cluster.clock.set_speed(1000.0)
        host = self.started(cluster)
        cluster.add(small_pod("big", cpu="50"))
        # Unschedulable pods are tried again after five minutes.
        self.until(lambda: host.status().decisions == 2)
        first, second = (cluster.decisions[number].time_ns for number in cluster.decisions.numbers_of("default/big"))
        assert 300 * SECOND <= second - first < 400 * SECOND
        host.stop()


def test_records_can_be_read_while_the_engine_writes() -> None:
    cluster = small_cluster(nodes=8)
    cluster.clock.resume()
    cluster.host.start()
    stop, problems = threading.Event(), list[Exception]()

    def read() -> None:
        try:
            while not stop.is_set():
                for number in range(cluster.decisions.oldest_full, len(cluster.decisions)):
                    decision = cluster.decisions.decision(number)
                    assert decision.total.max() == decision.record.total
        except LookupError:
            pass
        except Exception as problem:
            problems.append(problem)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(150):
        cluster.add(make_pod(f"p{number}").req(cpu="100m").obj())
        if number % 10 == 0:
            cluster.add(make_node(f"m{number}").capacity(cpu="4", memory="8Gi", pods="20").obj())
            time.sleep(0.002)
    end = time.monotonic() + 20
    while len(cluster.decisions) < 150 and time.monotonic() < end:
        time.sleep(0.01)
    stop.set()
    for reader in readers:
        reader.join()
    cluster.host.stop()
    assert not problems
    assert isinstance(cluster.decisions, DecisionStore)
    assert {record.outcome for record in cluster.decisions} == {Outcome.SCHEDULED}
