"""The virtual kubelet: starting, running, finishing and deleting pods."""

from __future__ import annotations

import pytest

from bayplan.base.errors import InputError
from bayplan.cluster.kubelet import PodRun
from bayplan.objects.pod import Pod
from tests.cluster.cluster_fixture import SECOND, ClusterFixture, as_pod, node, pod


def conditions(item: Pod) -> dict[str, tuple[str, str | None]]:
    return {condition.type: (condition.status, condition.last_transition_time) for condition in item.status.conditions}


@pytest.mark.parametrize(
    ("annotations", "at", "want"),
    [
        pytest.param({}, 10**6, "Running", id="without a run time it runs forever"),
        pytest.param({"bayplan.io/run-time": "90s"}, 89, "Running", id="shortly before its end"),
        pytest.param({"bayplan.io/run-time": "90s"}, 90, "Succeeded", id="at its end"),
        pytest.param({"bayplan.io/run-time": "1m30s", "bayplan.io/exit-code": "3"}, 90, "Failed", id="it fails"),
        pytest.param({"bayplan.io/run-time": "0s"}, 0, "Succeeded", id="a run time of zero"),
        pytest.param({"bayplan.io/run-time": "-5s"}, 0, "Succeeded", id="a negative run time"),
        pytest.param({"bayplan.io/exit-code": "3"}, 10**6, "Running", id="an exit code alone ends nothing"),
    ],
)
def test_the_run_time_and_exit_code_annotations_end_a_pod(annotations: dict[str, str], at: int, want: str) -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", annotations=annotations))
    fixture.settle()
    fixture.run_until(at)
    assert fixture.phases() == {want: 1}


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param(
            {"bayplan.io/run-time": "soon"}, r"annotations\['bayplan.io/run-time'\]: expected a dur", id="time"
        ),
        pytest.param(
            {"bayplan.io/run-time": "1s", "bayplan.io/exit-code": "-1"},
            r"Pod default/p \$.metadata.annotations\['bayplan.io/exit-code'\]: expected a whole number",
            id="exit code",
        ),
    ],
)
def test_an_invalid_annotation_raises_input_error(annotations: dict[str, str], want: str) -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod("p", annotations=annotations))
    with pytest.raises(InputError, match=want):
        fixture.cluster.bind("default/p", "node-0", 0)


def test_the_run_time_from_the_host_overrides_the_annotation() -> None:
    runs = {"p": PodRun(5 * SECOND, exit_code=1), "q": PodRun(None), "r": None}
    fixture = ClusterFixture(nodes=1, run_of=lambda item: runs[item.metadata.name])
    for name in runs:
        fixture.apply(pod(name, annotations={"bayplan.io/run-time": "90s"}))
    fixture.settle()
    fixture.run_until(100)
    assert [item.status.phase for item in fixture.pods()] == ["Failed", "Running", "Succeeded"]


def test_binding_and_running_are_one_event() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    fixture.apply(pod("p"))
    events = fixture.cluster.bind("default/p", "node-0", 7 * SECOND)
    assert [event.type for event in events] == ["MODIFIED"]
    new = as_pod(events[0].new)
    assert (new.spec.node_name, new.status.phase, new.status.start_time) == (
        "node-0",
        "Running",
        "1970-01-01T00:00:07Z",
    )
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    assert conditions(new) == dict.fromkeys(types, ("True", "1970-01-01T00:00:07Z"))


def test_a_start_delay_separates_binding_from_running() -> None:
    fixture = ClusterFixture(nodes=1, start_delay_s=5)
    fixture.apply(pod("p", annotations={"bayplan.io/run-time": "10s"}))
    fixture.settle()
    [bound] = fixture.pods()
    assert (bound.status.phase, bound.spec.node_name) == ("Pending", "node-0")
    assert conditions(bound) == {"PodScheduled": ("True", "1970-01-01T00:00:00Z")}
    fixture.run_until(5)
    [running] = fixture.pods()
    assert conditions(running)["Ready"] == ("True", "1970-01-01T00:00:05Z")
    assert conditions(running)["PodScheduled"] == ("True", "1970-01-01T00:00:00Z")
    fixture.run_until(14)
    assert fixture.phases() == {"Running": 1}
    fixture.run_until(15)
    assert fixture.phases() == {"Succeeded": 1}


def test_a_finished_pod_is_not_ready_since_its_end() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", annotations={"bayplan.io/run-time": "90s"}))
    fixture.settle()
    fixture.run_until(90)
    got = conditions(fixture.pods()[0])
    assert got["Ready"] == got["ContainersReady"] == ("False", "1970-01-01T00:01:30Z")
    assert got["Initialized"] == got["PodScheduled"] == ("True", "1970-01-01T00:00:00Z")


def test_a_recreated_pod_runs_for_its_full_run_time() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", annotations={"bayplan.io/run-time": "90s"}))
    fixture.settle()
    fixture.run_until(60)
    fixture.delete(Pod, "default/p")
    fixture.apply(pod("p", annotations={"bayplan.io/run-time": "90s"}))
    fixture.settle()
    fixture.run_until(90)
    assert fixture.phases() == {"Running": 1}
    fixture.run_until(150)
    assert fixture.phases() == {"Succeeded": 1}


@pytest.mark.parametrize(
    ("termination_s", "grace", "given", "gone_after"),
    [
        pytest.param(0, 30, None, 0, id="by default a pod is removed immediately"),
        pytest.param(60, 30, None, 30, id="after its grace period at the latest"),
        pytest.param(1.5, 30, None, 1.5, id="earlier if its processes end"),
        pytest.param(60, None, None, 30, id="30 seconds by default"),
        pytest.param(60, 30, 10, 10, id="a grace period of the deletion"),
        pytest.param(60, 30, 0, 0, id="a deletion without grace"),
        pytest.param(60, 0, None, 0, id="a pod without grace"),
    ],
)
def test_a_deleted_pod_is_removed_after_the_termination_time(
    termination_s: float, grace: int | None, given: int | None, gone_after: float
) -> None:
    fixture = ClusterFixture(nodes=1, termination_s=termination_s)
    spec = {} if grace is None else {"terminationGracePeriodSeconds": grace}
    fixture.apply(pod("p", **spec))
    fixture.settle()
    fixture.delete(Pod, "default/p", grace_seconds=given)
    if gone_after:
        [leaving] = fixture.pods()
        seconds = given or grace or 30
        assert leaving.metadata.deletion_timestamp == f"1970-01-01T00:00:{seconds:02}Z"
        assert leaving.metadata.deletion_grace_period_seconds == seconds
        fixture.run_until(gone_after - 0.001)
        assert fixture.phases() == {"Terminating": 1}
    fixture.run_until(gone_after)
    assert fixture.names() == []


@pytest.mark.parametrize(
    ("bind", "status"),
    [
        pytest.param(False, {}, id="a pod on no node"),
        pytest.param(True, {"phase": "Succeeded"}, id="a finished pod"),
    ],
)
def test_unbound_and_finished_pods_are_removed_immediately(bind: bool, status: dict[str, str]) -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60, binds=False)
    fixture.apply(pod("p", status=status, **({"nodeName": "node-0"} if bind else {})))
    fixture.delete(Pod, "default/p")
    assert fixture.names() == []


def test_a_second_deletion_can_only_shorten_the_grace_period() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    fixture.apply(pod("p", terminationGracePeriodSeconds=30))
    fixture.settle()
    fixture.delete(Pod, "default/p")
    before = len(fixture.events)
    fixture.delete(Pod, "default/p", grace_seconds=40)
    assert len(fixture.events) == before
    fixture.delete(Pod, "default/p", grace_seconds=5)
    fixture.run_until(5)
    assert fixture.names() == []


def test_a_terminating_pod_is_removed_when_it_finishes() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    fixture.apply(pod("p", annotations={"bayplan.io/run-time": "10s"}))
    fixture.settle()
    fixture.run_until(5)
    fixture.delete(Pod, "default/p")
    fixture.run_until(10)
    assert fixture.names() == []
    assert [as_pod(event.object).status.phase for event in fixture.events[-2:]] == ["Succeeded", "Succeeded"]


def test_a_deleted_pod_with_a_finalizer_fails_and_is_not_removed() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", finalizers=["example.com/hold"]))
    fixture.settle()
    fixture.delete(Pod, "default/p")
    [held] = fixture.pods()
    assert (held.status.phase, held.metadata.deletion_timestamp) == ("Failed", "1970-01-01T00:00:00Z")


def test_an_imported_running_pod_preserves_its_status_and_ends_on_time() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.run_until(50)
    started = {"phase": "Running", "startTime": "1970-01-01T00:00:20Z"}
    fixture.apply(pod("p", nodeName="node-0", status=started, annotations={"bayplan.io/run-time": "60s"}))
    assert fixture.pods()[0].status.start_time == "1970-01-01T00:00:20Z"
    fixture.run_until(79)
    assert fixture.phases() == {"Running": 1}
    fixture.run_until(80)
    assert fixture.phases() == {"Succeeded": 1}


def test_a_pod_created_before_its_node_starts_with_the_node() -> None:
    fixture = ClusterFixture()
    fixture.apply(pod("p", nodeName="late"), node("late"))
    assert fixture.phases() == {"Running": 1}


def test_a_pod_with_a_readiness_gate_is_not_ready() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("p", readinessGates=[{"conditionType": "example.com/gate"}]))
    fixture.settle()
    got = conditions(fixture.pods()[0])
    assert (got["Ready"][0], got["ContainersReady"][0]) == ("False", "True")
