"""Jobs: parallelism and completions, indexes, failures, suspension, deadlines, time to live."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.kubelet import PodRun
from bayplan.controllers.job_status import backoff_end_ns
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Job
from tests.cluster.world import SECOND, World, job, template


def stored(world: World) -> Job:
    found = world.store.get(Job, "default/calc")
    assert found is not None
    return found


def applied(world: World, **spec: Any) -> None:
    world.apply(job("calc", **spec))
    world.settle()


def conditions(world: World) -> list[tuple[str, str, str]]:
    return [(item.type, item.status, item.reason) for item in stored(world).status.conditions]


def counted(world: World) -> tuple[int, int, int]:
    """Return active, succeeded and failed."""
    status = stored(world).status
    return status.active, status.succeeded, status.failed


def test_pods_have_the_name_labels_and_finalizer_of_their_job() -> None:
    world = World(nodes=1, binds=False)
    applied(world, parallelism=2, completions=2)
    uid = stored(world).metadata.uid
    for item in world.pods():
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
    first, second = world.pods()
    assert first.metadata.labels is second.metadata.labels
    assert first.spec is second.spec


def test_indexed_pods_have_their_index_in_name_label_annotation_and_hostname() -> None:
    world = World(nodes=1)
    applied(world, parallelism=2, completions=3, completionMode="Indexed", run_time="10s")
    world.run_until(100)
    pods = world.pods()
    assert [item.metadata.name[:-5] for item in pods] == ["calc-0-", "calc-1-", "calc-2-"]
    for index, item in enumerate(pods):
        assert item.metadata.annotations["batch.kubernetes.io/job-completion-index"] == str(index)
        assert item.metadata.labels["batch.kubernetes.io/job-completion-index"] == str(index)
        assert item.spec.hostname == f"calc-{index}"
    assert stored(world).status.completed_indexes == "0-2"


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
    world = World(nodes=1)
    applied(world, run_time="10s", **spec)
    got = []
    for seconds in (0, 10, 20):
        world.run_until(seconds)
        got.append(counted(world)[:2])
    assert got == seen


def test_a_finished_job_is_complete_and_its_pods_have_no_finalizer() -> None:
    world = World(nodes=1)
    applied(world, completions=2, parallelism=2, run_time="10s")
    world.run_until(10)
    status = stored(world).status
    assert conditions(world) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert (status.start_time, status.completion_time) == ("1970-01-01T00:00:00Z", "1970-01-01T00:00:10Z")
    assert (status.ready, status.terminating) == (0, 0)
    assert world.phases() == {"Succeeded": 2}
    assert all(item.metadata.finalizers == () for item in world.pods())


def test_a_work_queue_job_starts_no_pods_after_the_first_success() -> None:
    runs = iter([PodRun(10 * SECOND), PodRun(30 * SECOND)])
    world = World(nodes=1, run_of=lambda _: next(runs))
    applied(world, parallelism=2)
    world.run_until(20)
    assert counted(world) == (1, 1, 0)
    world.run_until(30)
    assert conditions(world)[-1][0] == "Complete"


def test_failed_pods_are_replaced_with_exponential_backoff() -> None:
    world = World(nodes=1)
    applied(world, run_time="1s", exit_code=1, backoffLimit=3)
    world.run_until(1)
    assert counted(world) == (0, 0, 1)
    world.run_until(10.9)
    assert counted(world) == (0, 0, 1)
    world.run_until(11)
    assert counted(world) == (1, 0, 1)
    world.run_until(31.9)
    assert counted(world) == (0, 0, 2)
    world.run_until(32)
    assert counted(world) == (1, 0, 2)


@pytest.mark.parametrize(("failures", "want"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (1000, 600)])
def test_backoff_doubles_per_failure_up_to_ten_minutes(failures: int, want: int) -> None:
    assert backoff_end_ns(failures, 0) == want * SECOND


def test_a_success_resets_the_backoff() -> None:
    runs = iter([PodRun(SECOND, 1), PodRun(SECOND), PodRun(SECOND, 1), PodRun(SECOND)])
    world = World(nodes=1, run_of=lambda _: next(runs))
    applied(world, completions=2)
    world.run_until(12)
    assert counted(world) == (1, 1, 1)
    world.run_until(13)
    assert counted(world) == (0, 1, 2)
    world.run_until(23)
    assert counted(world) == (1, 1, 2)
    world.run_until(24)
    assert conditions(world)[-1][0] == "Complete"


def test_exceeding_the_backoff_limit_fails_the_job_and_stops_its_pods() -> None:
    runs = iter([PodRun(10 * SECOND, 1), PodRun(10 * SECOND, 1), PodRun(None)])
    world = World(nodes=1, run_of=lambda _: next(runs))
    applied(world, parallelism=3, completions=3, backoffLimit=1)
    world.run_until(10)
    assert conditions(world) == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    # The third pod was stopped when the Job failed, and counts as failed.
    assert counted(world) == (0, 0, 3)
    assert world.phases() == {"Failed": 2}
    assert stored(world).status.completion_time is None


def test_a_failing_job_waits_for_terminating_pods() -> None:
    runs = iter([PodRun(10 * SECOND, 1), PodRun(None)])
    world = World(nodes=1, run_of=lambda _: next(runs), termination_scale=1.0)
    applied(world, parallelism=2, completions=2, backoffLimit=0)
    world.run_until(10)
    assert conditions(world) == [("FailureTarget", "True", "BackoffLimitExceeded")]
    assert stored(world).status.terminating == 1
    world.run_until(40)
    assert conditions(world)[-1] == ("Failed", "True", "BackoffLimitExceeded")
    assert counted(world) == (0, 0, 2)


def test_exceeding_the_active_deadline_fails_the_job() -> None:
    world = World(nodes=1)
    applied(world, activeDeadlineSeconds=30)
    world.run_until(29)
    assert counted(world) == (1, 0, 0)
    world.run_until(30)
    assert conditions(world)[-1] == ("Failed", "True", "DeadlineExceeded")
    assert world.names() == []


def test_a_finished_job_is_deleted_after_its_time_to_live() -> None:
    world = World(nodes=1)
    applied(world, run_time="10s", ttlSecondsAfterFinished=60)
    world.run_until(69)
    assert world.phases() == {"Succeeded": 1}
    world.run_until(70)
    assert world.names() == []
    assert list(world.store.all(Job)) == []


def test_a_suspended_job_has_no_pods_until_resumed() -> None:
    world = World(nodes=1)
    applied(world, suspend=True, run_time="10s", activeDeadlineSeconds=15)
    assert world.names() == []
    assert stored(world).status.start_time is None
    assert conditions(world) == [("Suspended", "True", "JobSuspended")]
    world.run_until(100)
    applied(world, suspend=False, run_time="10s", activeDeadlineSeconds=15)
    assert conditions(world) == [("Suspended", "False", "JobResumed")]
    assert stored(world).status.start_time == "1970-01-01T00:01:40Z"
    world.run_until(110)
    assert conditions(world)[-1][0] == "Complete"


def test_suspending_a_job_deletes_its_pods_without_counting_failures() -> None:
    world = World(nodes=1)
    applied(world, parallelism=2, completions=2)
    applied(world, parallelism=2, completions=2, suspend=True)
    assert (world.names(), counted(world)) == ([], (0, 0, 0))


def test_reducing_parallelism_deletes_pods_without_counting_failures() -> None:
    world = World(nodes=1)
    applied(world, parallelism=4, completions=9)
    applied(world, parallelism=1, completions=9)
    assert counted(world) == (1, 0, 0)
    assert len(world.names()) == 1


def test_a_deleted_pod_counts_as_failed_and_is_replaced() -> None:
    world = World(nodes=1)
    applied(world)
    world.delete(Pod, f"default/{world.names()[0]}")
    world.settle()
    assert counted(world) == (0, 0, 1)
    world.run_until(10)
    assert counted(world) == (1, 0, 1)
    assert world.phases() == {"Running": 1}


def test_a_pod_on_a_deleted_node_counts_as_failed_once() -> None:
    world = World(nodes=2)
    applied(world, completionMode="Indexed", completions=2, parallelism=2)
    world.delete(Node, "node-0")
    world.settle()
    world.run_until(10)
    assert counted(world) == (2, 0, 1)
    assert sorted(item.metadata.name[:-5] for item in world.pods()) == ["calc-0-", "calc-1-"]


def test_a_deleted_pending_pod_counts_as_failed() -> None:
    world = World(binds=False)
    applied(world)
    world.delete(Pod, f"default/{world.names()[0]}")
    world.settle()
    assert counted(world) == (0, 0, 1)
    assert world.names() == []


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
    world = World(nodes=1, termination_scale=1.0)
    applied(world, **policy)
    world.delete(Pod, f"default/{world.names()[0]}")
    world.settle()
    world.run_until(29)
    assert world.phases() == want
    world.run_until(60)
    assert world.phases() == {"Running": 1}
    assert counted(world) == (1, 0, 1)


def test_failures_are_counted_per_index() -> None:
    world = World(nodes=1, run_of=lambda item: PodRun(SECOND, exit_code=int("-1-" in item.metadata.name)))
    applied(world, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1)
    world.run_until(1)
    assert counted(world) == (0, 2, 1)
    world.run_until(11)
    [again] = [item for item in world.pods("calc-1-") if item.status.phase == "Running"]
    assert again.metadata.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
    world.run_until(12)
    assert (stored(world).status.completed_indexes, stored(world).status.failed_indexes) == ("0,2", "1")
    assert conditions(world)[-1] == ("Failed", "True", "FailedIndexes")


def test_exceeding_max_failed_indexes_fails_the_job() -> None:
    world = World(nodes=1, run_of=lambda item: PodRun(SECOND, 1) if "-0-" in item.metadata.name else None)
    applied(world, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=0, maxFailedIndexes=0)
    world.run_until(1)
    assert conditions(world)[-1] == ("Failed", "True", "MaxFailedIndexesExceeded")
    assert counted(world) == (0, 0, 3)


def test_a_job_managed_by_another_controller_is_ignored() -> None:
    world = World(nodes=1)
    applied(world, managedBy="example.com/controller")
    assert world.names() == []


def test_a_recorded_indexed_job_continues_with_its_remaining_indexes() -> None:
    first = World(nodes=1)
    applied(first, completionMode="Indexed", completions=4, parallelism=2, run_time="10s")
    first.run_until(10)
    world = World()
    world.now_ns = first.now_ns
    world.apply(*first.store.nodes.values(), *first.store.pods.values(), *first.store.all(Job))
    world.settle()
    assert [name[:-5] for name in world.names()] == ["calc-0-", "calc-1-", "calc-2-", "calc-3-"]
    world.run_until(20)
    assert conditions(world)[-1][0] == "Complete"


def test_a_job_with_1000_indexes_completes() -> None:
    world = World(nodes=1)
    applied(world, completionMode="Indexed", completions=1000, parallelism=100, run_time="10s")
    world.run_until(1000)
    assert conditions(world)[-1][0] == "Complete"
    assert stored(world).status.completed_indexes == "0-999"
    assert len(world.added(Pod)) == 1000


def test_a_job_without_template_labels_creates_pods() -> None:
    world = World(nodes=1)
    body = template()
    del body["metadata"]["labels"]
    world.apply({**job("calc"), "spec": {"template": body}})
    world.settle()
    assert len(world.names()) == 1
