"""The executor of actions: each pod's exchanges in order, events last, answers now or later, failures to the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from bayplan.client import action_executor
from bayplan.client.action_executor import ActionExecutor
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.engine.actions import Action, Bind, Emit, Evict, SetCondition, Update
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim

T = TypeVar("T", bound=KubernetesObject)


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="n", uid=name))


def reported(name: str) -> Emit:
    return Emit(pod(name), "Normal", "Reason", "Testing", "note")


class Host:
    """A channel, an engine and an empty cluster. `answers`: statuses of the first responses; later requests wait."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.failed: list[str] = []
        self.waiting: list[Callable[[ApiResponse], None]] = []
        self.sleeping: list[Callable[[], None]] = []
        self.written: list[str] = []
        self.executor = ActionExecutor(self, self, host_name="host", now_ns=lambda: 10**18)
        self.executor.engine = self
        self.executor.on_written = lambda pod: self.written.append(pod.metadata.name)

    def send(self, request: ApiRequest, *, is_event: bool, answer: Callable[[ApiResponse], None]) -> ApiResponse | None:
        self.asked.append("event" if is_event else f"{request.method} {request.path.rpartition('/n/')[2]}")
        if self.answers:
            return ApiResponse(self.answers.pop(0), b'{"message": "no"}')
        self.waiting.append(answer)
        return None

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.sleeping.append(call)

    def wake(self) -> None:
        pass

    def get(self, kind: type[T], key: str) -> T | None:
        return None

    def binding_failed(
        self, pod: Pod, message: str, *, plugin: str = "", point: str = "", generation: int | None = None
    ) -> None:
        self.failed.append(f"{pod.key} {point} {plugin} {message} {generation}")

    def binding_written(self, pod: Pod, *, generation: int | None = None) -> None:
        pass

    def preemption_failed(self, pod: Pod, *, generation: int | None = None) -> None:
        self.failed.append(f"{pod.key} preempts {generation}")

    def execute(self, *actions: Action) -> None:
        self.executor.execute(actions, 7)
        self.executor.run_all()


A, B = pod("a"), pod("b")
CLAIM = PersistentVolumeClaim(metadata=ObjectMeta(name="claim", namespace="n", uid="claim"))
FAILED = SetCondition(A, "Unschedulable", "no room")


@pytest.mark.parametrize(
    ("actions", "answers", "want"),
    [
        pytest.param([Bind(A, "n1")], [201], ["POST pods/a/binding"], id="a binding"),
        pytest.param([reported("c"), Bind(A, "n1")], [201, 201], ["POST pods/a/binding", "event"], id="events come last"),
        pytest.param(
            [FAILED, Bind(A, "n1")], [200, 201], ["PATCH pods/a/status", "POST pods/a/binding"],
            id="answers at once let one pod's exchanges follow one another",
        ),
        pytest.param(
            [FAILED, Bind(A, "n1"), Bind(B, "n1")], [], ["PATCH pods/a/status", "POST pods/b/binding"],
            id="without an answer the next of the pod waits, and other pods don't",
        ),
    ],
)  # fmt: skip
def test_exchanges_of_a_pod_run_in_order_and_events_are_sent_last(
    actions: Sequence[Action], answers: list[int], want: list[str]
) -> None:
    host = Host(*answers)
    host.execute(*actions)
    assert host.asked[: len(want)] == want


def test_a_delayed_response_continues_the_exchanges_of_its_pod() -> None:
    host = Host()
    host.execute(FAILED, Bind(A, "n1"))
    assert not host.executor.is_idle
    host.waiting.pop()(ApiResponse(200))
    host.executor.run_all()
    assert host.asked == ["PATCH pods/a/status", "POST pods/a/binding"]
    host.waiting.pop()(ApiResponse(201))
    host.executor.run_all()
    assert (host.executor.is_idle, host.written, host.failed) == (True, ["a", "a"], [])


def test_a_conflict_is_retried_after_a_pause() -> None:
    host = Host(409, 200)
    host.execute(FAILED)
    assert (host.asked, len(host.sleeping)) == (["PATCH pods/a/status"], 1)
    host.sleeping.pop()()
    assert (host.asked, host.executor.is_idle) == (["PATCH pods/a/status"] * 2, True)


@pytest.mark.parametrize(
    ("action", "want"),
    [
        pytest.param(Bind(A, "n1"), "n/a Bind DefaultBinder no 7", id="a binding"),
        pytest.param(Evict(B, A, "n1"), "n/a preempts 7", id="an eviction"),
    ],
)
def test_failed_bindings_and_evictions_are_reported_to_the_engine(action: Action, want: str) -> None:
    host = Host(403, 403)
    host.execute(action)
    assert host.failed == [want]


def test_an_internal_error_is_reported_as_a_failed_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(action_executor, "exchanges_of", broken)
    host = Host()
    host.execute(FAILED, Bind(A, "n1"))
    assert (host.failed, host.executor.failures) == (["n/a Bind DefaultBinder internal error 7"], 1)


def test_a_pod_does_not_wait_for_an_earlier_pod_of_the_same_name() -> None:
    host = Host()
    again = Pod(metadata=ObjectMeta(name="a", namespace="n", uid="another"))
    host.execute(Bind(A, "n1"))
    host.execute(Bind(again, "n2"))
    assert host.asked == ["POST pods/a/binding"] * 2


def test_an_eviction_cancels_the_binding_of_a_victim_that_is_in_its_pre_bind_phase() -> None:
    host = Host(200)
    host.execute(Update(B, "node", CLAIM), Bind(B, "node"))
    host.execute(Evict(B, A, "node"))
    host.waiting.pop()(ApiResponse(200, b"{}"))
    host.sleeping.pop()()
    assert host.failed == ["n/b PreBind VolumeBinding preempted by DefaultPreemption 7"]
    # Nothing is left to cancel.
    host.execute(Evict(B, A, "node"))
    assert host.asked[-1] == "PATCH pods/b/status"
