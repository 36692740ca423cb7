"""Statuses of pods: conditions that are set, and containers that are listed on request."""

from __future__ import annotations

import pytest

from bayplan.cluster.pod_status import ended_status, running_status, with_condition
from bayplan.objects.pod import Container, Pod, PodCondition, PodSpec, PodStatus

TIME = "1970-01-01T00:00:00Z"
LATER = "1970-01-01T00:00:09Z"
OLD = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="m", last_transition_time=TIME)


@pytest.mark.parametrize(
    ("present", "new", "want"),
    [
        pytest.param((), OLD, (OLD,), id="a first condition"),
        pytest.param(
            (OLD,),
            PodCondition(
                type="PodScheduled", status="False", reason="Unschedulable", message="m", last_transition_time=LATER
            ),
            (OLD,),
            id="an equal condition",
        ),
        pytest.param(
            (OLD,),
            PodCondition(type="PodScheduled", status="False", reason="Other", last_transition_time=LATER),
            (PodCondition(type="PodScheduled", status="False", reason="Other", last_transition_time=TIME),),
            id="another reason keeps the time of the transition",
        ),
        pytest.param(
            (OLD,),
            PodCondition(type="PodScheduled", status="True", last_transition_time=LATER),
            (PodCondition(type="PodScheduled", status="True", last_transition_time=LATER),),
            id="another status",
        ),
        pytest.param(
            (PodCondition(type="A", status="True"), OLD),
            PodCondition(type="B", status="True"),
            (PodCondition(type="A", status="True"), OLD, PodCondition(type="B", status="True")),
            id="another type is appended",
        ),
    ],
)
def test_with_condition_updates_or_appends_a_condition(
    present: tuple[PodCondition, ...], new: PodCondition, want: tuple[PodCondition, ...]
) -> None:
    status = PodStatus(conditions=present)
    got = with_condition(status, new)
    assert got.conditions == want
    assert (got is status) == (present == want)


def test_foreign_conditions_are_preserved() -> None:
    other = PodCondition(type="example.com/mine", status="True")
    pod = Pod(status=PodStatus(conditions=(other, OLD)))
    running = running_status(pod, LATER, container_statuses=False)
    assert other in running.conditions
    assert [item.status for item in running.conditions if item.type == "PodScheduled"] == ["True"]
    ended = ended_status(Pod(status=running), LATER, 0, container_statuses=False)
    assert other in ended.conditions
    assert len(ended.conditions) == len(running.conditions)


def test_statuses_with_the_same_time_share_their_conditions() -> None:
    one, other = (running_status(Pod(), LATER, container_statuses=False) for _ in range(2))
    assert one.conditions is other.conditions


def test_container_statuses_are_listed_on_request() -> None:
    pod = Pod(spec=PodSpec(containers=(Container(name="a"), Container(name="b"))))
    running = running_status(pod, TIME, container_statuses=True)
    assert [(item.name, item.ready, item.state.running is not None) for item in running.container_statuses] == [
        ("a", True, True),
        ("b", True, True),
    ]
    ended = ended_status(Pod(spec=pod.spec, status=running), LATER, 2, container_statuses=True)
    terminated = [item.state.terminated for item in ended.container_statuses]
    assert [(item.exit_code, item.reason, item.started_at, item.finished_at) for item in terminated if item] == [
        (2, "Error", TIME, LATER)
    ] * 2
