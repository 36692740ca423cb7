"""Jobs: parallelism and completions, indexes, failures, suspension, deadlines, time to live."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.kubelet import PodRun
from bayplan.controllers.job_status import backoff_end_ns
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Job
from tests.apiserver.bridge.bridge_fixture import API, BATCH, BridgeFixture
from tests.apiserver.bridge.bridge_fixture import job as job_document
from tests.cluster.cluster_fixture import SECOND, ClusterFixture, job, template


def stored(fixture: ClusterFixture) -> Job:
    found = fixture.store.get(Job, "default/calc")
    assert found is not None
    return found


def applied(fixture: ClusterFixture, **spec: Any) -> None:
    fixture.apply(job("calc", **spec))
    fixture.settle()


def conditions(fixture: ClusterFixture) -> list[tuple[str, str, str]]:
    return [(item.type, item.status, item.reason) for item in stored(fixture).status.conditions]


def counted(fixture: ClusterFixture) -> tuple[int, int, int]:
    """Return the numbers of active, succeeded and failed pods."""
    status = stored(fixture).status
    return status.active, status.succeeded, status.failed


def test_pods_have_the_name_labels_and_finalizer_of_their_job() -> None:
    fixture = ClusterFixture(nodes=1, binds=False)
    applied(fixture, parallelism=2, completions=2)
    uid = stored(fixture).metadata.uid
    for item in fixture.pods():
        assert item.metadata.name.startswith("calc-")
        assert len(item.metadata.name) == 10
        assert item.metadata.labels == {
            "app": "x",
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": "calc",
            "controller-uid": uid,
            "job-name": "calc",
        }
        assert item.metadata.finalizers == ("batch.kubernetes.io/job-tracking",)
    first, second = fixture.pods()
    assert first.metadata.labels is second.metadata.labels
    assert first.spec is second.spec


def test_indexed_pods_have_their_index_in_name_label_annotation_and_hostname() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, parallelism=2, completions=3, completionMode="Indexed", run_time="10s")
    fixture.run_until(100)
    pods = fixture.pods()
    assert [item.metadata.name[:-5] for item in pods] == ["calc-0-", "calc-1-", "calc-2-"]
    for index, item in enumerate(pods):
        assert item.metadata.annotations["batch.kubernetes.io/job-completion-index"] == str(index)
        assert item.metadata.labels["batch.kubernetes.io/job-completion-index"] == str(index)
        assert item.spec.hostname == f"calc-{index}"
    assert stored(fixture).status.completed_indexes == "0-2"


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        pytest.param({}, [(1, 0), (0, 1), (0, 1)], id="one pod"),
        pytest.param({"completions": 3}, [(1, 0), (1, 1), (1, 2)], id="three, one after the other"),
        pytest.param({"completions": 5, "parallelism": 3}, [(3, 0), (2, 3), (0, 5)], id="five, three at a time"),
        pytest.param({"parallelism": 3}, [(3, 0), (0, 3), (0, 3)], id="a work queue with three workers"),
        pytest.param({"completions": 2, "parallelism": 9}, [(2, 0), (0, 2), (0, 2)], id="at most as many as are left"),
        pytest.param({"completions": 0}, [(0, 0), (0, 0), (0, 0)], id="nothing to do"),
        pytest.param({"parallelism": 0}, [(0, 0), (0, 0), (0, 0)], id="no pods to do it"),
    ],
)
def test_parallelism_and_completions_limit_the_running_pods(spec: dict[str, Any], seen: list[tuple[int, int]]) -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, run_time="10s", **spec)
    got = []
    for seconds in (0, 10, 20):
        fixture.run_until(seconds)
        got.append(counted(fixture)[:2])
    assert got == seen


def test_a_finished_job_is_complete_and_its_pods_have_no_finalizer() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, completions=2, parallelism=2, run_time="10s")
    fixture.run_until(10)
    status = stored(fixture).status
    assert conditions(fixture) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert (status.start_time, status.completion_time) == ("1970-01-01T00:00:00Z", "1970-01-01T00:00:10Z")
    assert (status.ready, status.terminating) == (0, 0)
    assert fixture.phases() == {"Succeeded": 2}
    assert all(item.metadata.finalizers == () for item in fixture.pods())


def test_a_work_queue_job_starts_no_pods_after_the_first_success() -> None:
    runs = iter([PodRun(10 * SECOND), PodRun(30 * SECOND)])
    fixture = ClusterFixture(nodes=1, run_of=lambda _: next(runs))
    applied(fixture, parallelism=2)
    fixture.run_until(20)
    assert counted(fixture) == (1, 1, 0)
    fixture.run_until(30)
    assert conditions(fixture)[-1][0] == "Complete"


def test_failed_pods_are_replaced_with_exponential_backoff() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, run_time="1s", exit_code=1, backoffLimit=3)
    fixture.run_until(1)
    assert counted(fixture) == (0, 0, 1)
    fixture.run_until(10.9)
    assert counted(fixture) == (0, 0, 1)
    fixture.run_until(11)
    assert counted(fixture) == (1, 0, 1)
    fixture.run_until(31.9)
    assert counted(fixture) == (0, 0, 2)
    fixture.run_until(32)
    assert counted(fixture) == (1, 0, 2)


@pytest.mark.parametrize(("failures", "want"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (1000, 600)])
def test_backoff_doubles_per_failure_up_to_ten_minutes(failures: int, want: int) -> None:
    assert backoff_end_ns(failures, 0) == want * SECOND


def test_a_success_resets_the_backoff() -> None:
    runs = iter([PodRun(SECOND, 1), PodRun(SECOND), PodRun(SECOND, 1), PodRun(SECOND)])
    fixture = ClusterFixture(nodes=1, run_of=lambda _: next(runs))
    applied(fixture, completions=2)
    fixture.run_until(12)
    assert counted(fixture) == (1, 1, 1)
    fixture.run_until(13)
    assert counted(fixture) == (0, 1, 2)
    fixture.run_until(23)
    assert counted(fixture) == (1, 1, 2)
    fixture.run_until(24)
    assert conditions(fixture)[-1][0] == "Complete"


def test_exceeding_the_backoff_limit_fails_the_job_and_stops_its_pods() -> None:
    runs = iter([PodRun(10 * SECOND, 1), PodRun(10 * SECOND, 1), PodRun(None)])
    fixture = ClusterFixture(nodes=1, run_of=lambda _: next(runs))
    applied(fixture, parallelism=3, completions=3, backoffLimit=1)
    fixture.run_until(10)
    assert conditions(fixture) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    # The third pod was stopped when the Job failed, and counts as failed.
    assert counted(fixture) == (0, 0, 3)
    assert fixture.phases() == {"Failed": 2}
    assert stored(fixture).status.completion_time is None


def test_a_failing_job_waits_for_terminating_pods() -> None:
    runs = iter([PodRun(10 * SECOND, 1), PodRun(None)])
    fixture = ClusterFixture(nodes=1, run_of=lambda _: next(runs), termination_s=60)
    applied(fixture, parallelism=2, completions=2, backoffLimit=0)
    fixture.run_until(10)
    assert conditions(fixture) == [("FailureTarget", "True", "BackoffLimitExceeded")]
    assert stored(fixture).status.terminating == 1
    fixture.run_until(40)
    assert conditions(fixture)[-1] == ("Failed", "True", "BackoffLimitExceeded")
    assert counted(fixture) == (0, 0, 2)


def test_exceeding_the_active_deadline_fails_the_job() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, activeDeadlineSeconds=30)
    fixture.run_until(29)
    assert counted(fixture) == (1, 0, 0)
    fixture.run_until(30)
    assert conditions(fixture)[-1] == ("Failed", "True", "DeadlineExceeded")
    assert fixture.names() == []


def test_a_finished_job_is_deleted_after_its_time_to_live() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, run_time="10s", ttlSecondsAfterFinished=60)
    fixture.run_until(69)
    assert fixture.phases() == {"Succeeded": 1}
    fixture.run_until(70)
    assert fixture.names() == []
    assert list(fixture.store.all(Job)) == []


def test_a_suspended_job_has_no_pods_until_resumed() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, suspend=True, run_time="10s", activeDeadlineSeconds=15)
    assert fixture.names() == []
    assert stored(fixture).status.start_time is None
    assert conditions(fixture) == [("Suspended", "True", "JobSuspended")]
    fixture.run_until(100)
    applied(fixture, suspend=False, run_time="10s", activeDeadlineSeconds=15)
    assert conditions(fixture) == [("Suspended", "False", "JobResumed")]
    assert stored(fixture).status.start_time == "1970-01-01T00:01:40Z"
    fixture.run_until(110)
    assert conditions(fixture)[-1][0] == "Complete"


def test_suspending_a_job_deletes_its_pods_without_counting_failures() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, parallelism=2, completions=2)
    applied(fixture, parallelism=2, completions=2, suspend=True)
    assert (fixture.names(), counted(fixture)) == ([], (0, 0, 0))


def test_reducing_parallelism_deletes_pods_without_counting_failures() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, parallelism=4, completions=9)
    applied(fixture, parallelism=1, completions=9)
    assert counted(fixture) == (1, 0, 0)
    assert len(fixture.names()) == 1


def test_a_deleted_pod_counts_as_failed_and_is_replaced() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture)
    fixture.delete(Pod, f"default/{fixture.names()[0]}")
    fixture.settle()
    assert counted(fixture) == (0, 0, 1)
    fixture.run_until(10)
    assert counted(fixture) == (1, 0, 1)
    assert fixture.phases() == {"Running": 1}


def test_a_pod_on_a_deleted_node_counts_as_failed_once() -> None:
    fixture = ClusterFixture(nodes=2)
    applied(fixture, completionMode="Indexed", completions=2, parallelism=2)
    fixture.delete(Node, "node-0")
    fixture.settle()
    fixture.run_until(10)
    assert counted(fixture) == (2, 0, 1)
    assert sorted(item.metadata.name[:-5] for item in fixture.pods()) == ["calc-0-", "calc-1-"]


def test_a_deleted_pending_pod_counts_as_failed() -> None:
    fixture = ClusterFixture(binds=False)
    applied(fixture)
    fixture.delete(Pod, f"default/{fixture.names()[0]}")
    fixture.settle()
    assert counted(fixture) == (0, 0, 1)
    assert fixture.names() == []


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param({}, {"Running": 1, "Terminating": 1}, id="a terminating pod is replaced once the backoff is over"),
        pytest.param({"podReplacementPolicy": "Failed"}, {"Terminating": 1}, id="or only when it has failed"),
    ],
)
def test_the_pod_replacement_policy_determines_when_a_terminating_pod_is_replaced(
    policy: dict[str, str], want: dict[str, int]
) -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    applied(fixture, **policy)
    fixture.delete(Pod, f"default/{fixture.names()[0]}")
    fixture.settle()
    fixture.run_until(29)
    assert fixture.phases() == want
    fixture.run_until(60)
    assert fixture.phases() == {"Running": 1}
    assert counted(fixture) == (1, 0, 1)


def test_failures_are_counted_per_index() -> None:
    fixture = ClusterFixture(nodes=1, run_of=lambda item: PodRun(SECOND, exit_code=int("-1-" in item.metadata.name)))
    applied(fixture, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1)
    fixture.run_until(1)
    assert counted(fixture) == (0, 2, 1)
    fixture.run_until(11)
    [again] = [item for item in fixture.pods("calc-1-") if item.status.phase == "Running"]
    assert again.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
    fixture.run_until(12)
    assert (stored(fixture).status.completed_indexes, stored(fixture).status.failed_indexes) == ("0,2", "1")
    assert conditions(fixture)[-1] == ("Failed", "True", "FailedIndexes")


def test_exceeding_max_failed_indexes_fails_the_job() -> None:
    fixture = ClusterFixture(nodes=1, run_of=lambda item: PodRun(SECOND, 1) if "-0-" in item.metadata.name else None)
    applied(fixture, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=0, maxFailedIndexes=0)
    fixture.run_until(1)
    assert conditions(fixture)[-1] == ("Failed", "True", "MaxFailedIndexesExceeded")
    assert counted(fixture) == (0, 0, 3)


def test_a_job_managed_by_another_controller_is_ignored() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, managedBy="example.com/controller")
    assert fixture.names() == []


def test_a_recorded_indexed_job_continues_with_its_remaining_indexes() -> None:
    first = ClusterFixture(nodes=1)
    applied(first, completionMode="Indexed", completions=4, parallelism=2, run_time="10s")
    first.run_until(10)
    fixture = ClusterFixture()
    fixture.now_ns = first.now_ns
    fixture.apply(*first.store.nodes.values(), *first.store.pods.values(), *first.store.all(Job))
    fixture.settle()
    assert [name[:-5] for name in fixture.names()] == ["calc-0-", "calc-1-", "calc-2-", "calc-3-"]
    fixture.run_until(20)
    assert conditions(fixture)[-1][0] == "Complete"


def test_a_job_with_1000_indexes_completes() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, completionMode="Indexed", completions=1000, parallelism=100, run_time="10s")
    fixture.run_until(1000)
    assert conditions(fixture)[-1][0] == "Complete"
    assert stored(fixture).status.completed_indexes == "0-999"
    assert len(fixture.added(Pod)) == 1000


def test_a_job_without_template_labels_creates_pods() -> None:
    fixture = ClusterFixture(nodes=1)
    body = template()
    del body["metadata"]["labels"]
    fixture.apply({**job("calc"), "spec": {"template": body}})
    fixture.settle()
    assert len(fixture.names()) == 1


def test_a_large_job_of_a_server_waits_after_failures_and_ends_when_too_many_indexes_have_failed() -> None:
    fixture = BridgeFixture(nodes=1)
    spec: dict[str, object] = {"parallelism": 40, "completions": 40, "completionMode": "Indexed"}
    document = job_document("calc", "5s", {**spec, "backoffLimitPerIndex": 1})
    failing = "bayplan.io/exit-code"
    document["spec"]["template"]["metadata"]["annotations"][failing] = "1"  # type: ignore[index]
    fixture.post(f"{BATCH}/jobs", document)
    seen = []
    for _ in range(4):
        fixture.run(8)
        status = fixture.get(f"{BATCH}/jobs/calc")
        seen.append((status.at("status.failed"), status.at("status.active")))
    assert seen == [(40, None), (40, 40), (80, None), (80, None)]
    assert fixture.get(f"{BATCH}/jobs/calc").at("status.failedIndexes") == "0-39"


def test_a_large_job_of_a_server_waits_for_other_indexes_when_some_have_failed() -> None:
    fixture = BridgeFixture(nodes=1)
    spec: dict[str, object] = {"parallelism": 40, "completions": 40, "completionMode": "Indexed"}
    fixture.post(f"{BATCH}/jobs", job_document("calc", "", {**spec, "backoffLimitPerIndex": 0}))
    fixture.run()
    for name in fixture.names("pods")[:24]:
        fixture.patch(f"{API}/namespaces/default/pods/{name}/status", {"status": {"phase": "Failed"}})
    fixture.run(60)
    status = fixture.get(f"{BATCH}/jobs/calc")
    assert (status.at("status.failed"), status.at("status.active")) == (24, 16)
