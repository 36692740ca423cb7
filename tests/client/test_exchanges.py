"""Tests of the requests for lists of actions: their order, and the handling of refusals."""

from __future__ import annotations

import pytest

from bayplan.client.requests import NO_ANSWER, ApiResponse
from bayplan.engine.actions import Action, Bind, Evict, Nominate, SetCondition
from tests.client.exchange_host import OK, POD_PATH, Host, emit, pod, refusal


@pytest.mark.parametrize(
    ("actions", "want"),
    [
        pytest.param([Bind(pod(), "n1")], [f"POST {POD_PATH}/p/binding"], id="a pod is bound"),
        pytest.param([Bind(pod(), "n1", "extender")], [], id="an extender has bound it already"),
        pytest.param(
            [emit(pod(), "FailedScheduling"), SetCondition(pod(), "Unschedulable", "no room")],
            ["event FailedScheduling of p by default-scheduler", f"PATCH {POD_PATH}/p/status"],
            id="a pod finds no node",
        ),
        pytest.param([Nominate(pod(), "n1")], [f"PATCH {POD_PATH}/p/status"], id="a nomination alone"),
        pytest.param([Nominate(pod(), "")], [], id="a missing nomination is not cleared"),
        pytest.param(
            [Evict(pod("a"), pod("vip"), "n1"), emit(pod("a"), "Preempted"), Evict(pod("b"), pod("vip"), "n1"),
             emit(pod("b"), "Preempted"), Nominate(pod("c"), "n2")],
            [f"PATCH {POD_PATH}/a/status", f"DELETE {POD_PATH}/a", "event Preempted of a by second",
             f"PATCH {POD_PATH}/b/status", f"DELETE {POD_PATH}/b", "event Preempted of b by second",
             f"PATCH {POD_PATH}/c/status"],
            id="victims are evicted one by one, followed by another exchange",
        ),
        pytest.param(
            [Bind(pod("a"), "n1"), Bind(pod("b"), "n1")], [f"POST {POD_PATH}/a/binding", f"POST {POD_PATH}/b/binding"],
            id="two pods are two exchanges",
        ),
    ],
)  # fmt: skip
def test_actions_are_executed_as_requests_in_order(actions: list[Action], want: list[str]) -> None:
    # As in the engine, a pod is the same object in all actions of a list.
    assert _of_one_preemptor(Host(), actions) == want


def _of_one_preemptor(host: Host, actions: list[Action]) -> list[str]:
    preemptor = pod("vip")
    found = [Evict(action.pod, preemptor, "n1") if isinstance(action, Evict) else action for action in actions]
    return host.execute(*found)


def test_condition_and_nomination_of_one_pod_are_sent_in_one_patch() -> None:
    host, vip = Host(), pod("vip")
    host.execute(SetCondition(vip, "Unschedulable", "no room"), Nominate(vip, "n1"))
    [body] = host.bodies.values()
    assert isinstance(body, dict)
    assert body["status"]["nominatedNodeName"] == "n1"
    assert body["status"]["conditions"][0]["message"] == "no room"


def test_a_binding_contains_the_pod_name_and_uid() -> None:
    host = Host()
    host.execute(Bind(pod(), "n1"))
    assert host.bound == ["n/p"]
    assert host.bodies == {
        f"POST {POD_PATH}/p/binding": {
            "kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "n", "uid": "uid-p"},
            "target": {"kind": "Node", "name": "n1"},
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        pytest.param(refusal(409, "is being deleted"), "is being deleted", id="the server's words"),
        pytest.param(ApiResponse(500, b"oops"), "the server answered with status 500", id="no words"),
        pytest.param(ApiResponse(NO_ANSWER, b"connection refused"), "connection refused", id="no answer"),
    ],
)
def test_a_refused_binding_is_reported_as_failed(answer: ApiResponse, want: str) -> None:
    host = Host({f"POST {POD_PATH}/p/binding": [answer]})
    assert host.execute(Bind(pod(), "n1"))[1:] == [f"Bind of n/p failed in DefaultBinder: {want}"]


def test_a_status_patch_is_retried_on_503_and_409_but_not_on_404() -> None:
    path = f"PATCH {POD_PATH}/p/status"
    host = Host({path: [refusal(503), refusal(409), OK]})
    assert host.execute(SetCondition(pod(), "Unschedulable", "")) == [path] * 3
    host = Host({path: [refusal(503)]})
    assert host.execute(SetCondition(pod(), "Unschedulable", "")) == [path] * 4
    host = Host({path: [refusal(404)]})
    assert host.execute(SetCondition(pod(), "Unschedulable", "")) == [path]


def test_a_missing_victim_is_skipped_and_other_failures_end_the_preemption() -> None:
    vip, a, b = pod("vip"), pod("a"), pod("b")
    actions: list[Action] = [Evict(a, vip, "n1"), emit(a, "Preempted"), Evict(b, vip, "n1"), emit(b, "Preempted")]
    gone = Host({f"PATCH {POD_PATH}/a/status": [refusal(404)]}).execute(*actions)
    assert gone[1:] == [f"PATCH {POD_PATH}/b/status", f"DELETE {POD_PATH}/b", "event Preempted of b by second"]
    failed = Host({f"DELETE {POD_PATH}/a": [refusal(403)]}).execute(*actions)
    assert failed[2:] == ["preemption for n/vip failed"]
