"""Start times of waiting pods: annotations, histories, assumptions, and pods that never finish."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.answers.answer_text import start_text
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.start_times import start_times
from bayplan.app.scheduler_setup import read_setup
from bayplan.base.durations import HOUR_NS, SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.object_builders import make_object
from tests.answers.clusters import node, running, waiting

NOW_NS = parse_time_ns("2026-01-01T01:00:00Z")


def ending(name: str, *, run_time: str = "") -> Pod:
    """Return a pod of a Job that has run for an hour."""
    made = running(name, "n1", cpu="3", owner="train", kind="Job").spec(restartPolicy="Never")
    return (made.annotation({"bayplan.io/run-time": run_time}) if run_time else made).obj()


def finished(name: str, end: str) -> Pod:
    """Return a pod of the same Job that has ended."""
    pod = ending(name)
    ended = ContainerState(terminated=ContainerStateTerminated(finished_at=end))
    status = PodStatus(
        phase="Succeeded",
        start_time="2026-01-01T00:00:00Z",
        container_statuses=(ContainerStatus(name="c", state=ended),),
    )
    return replace(pod, status=status)


def cluster(*items: KubernetesObject) -> QuestionCluster:
    return QuestionCluster((node("n1"), *items), read_setup(), now_ns=NOW_NS)


@pytest.mark.parametrize(
    ("items", "assumed", "want"),
    [
        pytest.param([ending("train-1", run_time="3h")], None, 2 * HOUR_NS, id="its annotation has a run time"),
        pytest.param(
            [ending("train-1"), finished("train-0", "2026-01-01T01:30:00Z")],
            None,
            HOUR_NS // 2,
            id="other pods of its Job",
        ),
        pytest.param([ending("train-1")], 4 * HOUR_NS, 3 * HOUR_NS, id="an assumed run time"),
        pytest.param([ending("train-1")], None, None, id="no known run time"),
        pytest.param([running("web-1", "n1", cpu="3").obj()], HOUR_NS, None, id="it never ends"),
        pytest.param([], None, 0, id="there is room"),
    ],
)
def test_the_start_time_follows_the_expected_end_of_running_pods(
    items: list[Pod], assumed: int | None, want: int | None
) -> None:
    answer = start_times(cluster(*items, waiting("next", cpu="2")), "next", assumed_run_ns=assumed, seeds=(0, 1))
    assert answer.median_ns == want
    assert {each.node for each in answer.starts} == {"" if want is None else "n1"}
    verdict = start_text(answer)[0]
    assert verdict.startswith(
        "pod/default/next does not start within 7 d" if want is None else "pod/default/next starts in"
    )


def test_a_history_of_run_times_gives_a_range_of_start_times() -> None:
    history = [finished(f"train-{hour}", f"2026-01-01T0{hour}:00:00Z") for hour in range(2, 8)]
    answer = start_times(cluster(ending("train-1"), *history, waiting("next", cpu="2")), "next", seeds=range(8))
    assert answer.earliest_ns is not None
    assert answer.latest_ns is not None
    assert HOUR_NS - SECOND_NS <= answer.earliest_ns < answer.latest_ns <= 6 * HOUR_NS
    waits = sorted(each.wait_ns for each in answer.starts if each.wait_ns is not None)
    assert len(waits) == 8
    # The lower of the two middle values.
    assert (answer.earliest_ns, answer.median_ns, answer.latest_ns) == (waits[0], waits[3], waits[7])
    assert waits[0] < waits[3]


def test_seeds_and_pods_with_the_same_reason_share_a_row() -> None:
    pods = [waiting(f"next-{number}", cpu="2", owner="next") for number in range(3)]
    answer = start_times(cluster(running("web-1", "n1", cpu="3").obj(), *pods), "next", seeds=(0, 1, 2, 5))
    message = "0/1 nodes are available: 1 Insufficient cpu"
    assert start_text(answer)[2:4] == [
        "  POD                        SEEDS   STARTS  IN  NODE",
        f"  default/next-0 and 2 more  0-2, 5  -       -   -     {message}",
    ]
    assert start_text(answer, everything=True)[3:6] == [
        f"  default/next-{number}  0-2, 5  -       -   -     {message}" for number in range(3)
    ]


def test_seeds_with_the_same_start_share_a_row() -> None:
    answer = start_times(cluster(waiting("next", cpu="2")), "next", seeds=range(4))
    assert start_text(answer)[3] == "  default/next  0-3    2026-01-01T01:00:00Z  0 s  n1"


def test_a_workload_without_pending_pods_is_refused() -> None:
    with pytest.raises(InputError, match="is not pending"):
        start_times(cluster(running("web-1", "n1").obj()), "web")


def test_a_gated_pod_does_not_start() -> None:
    pod = make_pod("x").gate("example.com/quota").obj()
    lines = start_text(start_times(cluster(pod), "x"))
    assert lines[0] == "pod/default/x does not start within 7 d; nothing removes its scheduling gates."
    assert lines[3].endswith("waiting for scheduling gates: [example.com/quota]")


@pytest.mark.parametrize(
    ("items", "want"),
    [
        pytest.param([], ["no pod may end (restartPolicy Never or OnFailure)"], id="none"),
        pytest.param(
            [running("web-1", "n1").annotation({"bayplan.io/run-time": "2h"}).obj()],
            [
                "1 pod may end (restartPolicy Never or OnFailure, or annotation bayplan.io/run-time)",
                "1 of them runs as long as its annotation bayplan.io/run-time says",
            ],
            id="one that would be restarted without its annotation",
        ),
        pytest.param(
            [ending("train-1", run_time="forever")],
            ["no pod may end (restartPolicy Never or OnFailure)"],
            id="one that runs forever",
        ),
        pytest.param(
            [ending("train-1")],
            [
                "1 pod may end (restartPolicy Never or OnFailure)",
                "1 of them has no known run time, and is assumed to run for 2 h",
            ],
            id="one without a known run time",
        ),
    ],
)
def test_the_assumptions_count_the_pods_that_may_end(items: list[Pod], want: list[str]) -> None:
    answer = start_times(cluster(*items, waiting("next")), "next", assumed_run_ns=2 * HOUR_NS, seeds=(0,))
    assert [*answer.assumptions] == [*want, "no node is added or removed, and only controllers create new pods"]


@pytest.mark.parametrize(
    ("grace", "deleted", "want"),
    [
        pytest.param(30, "2026-01-01T01:10:00Z", 600 * SECOND_NS, id="at the end of its grace period"),
        pytest.param(0, "2026-01-01T01:10:00Z", 600 * SECOND_NS, id="without a grace period"),
        pytest.param(30, "2026-01-01T00:10:00Z", SECOND_NS, id="at once, if the grace period is over"),
    ],
)
def test_a_terminating_pod_makes_room(grace: int, deleted: str, want: int) -> None:
    dying = running("dying", "n1", cpu="3", kind="").terminating(deleted)
    dying.document()["metadata"]["deletionGracePeriodSeconds"] = grace
    answer = start_times(cluster(dying.obj(), waiting("next", cpu="2")), "next", seeds=(0,))
    assert answer.median_ns == want
    assert "1 terminating pod ends when its grace period is over" in answer.assumptions


def test_a_terminating_pod_stays_on_an_unreachable_node() -> None:
    lost = make_node("n1").capacity(cpu="4", memory="8Gi", pods="9").taint("node.kubernetes.io/unreachable").obj()
    dying = running("dying", "n1", cpu="3", kind="").terminating().obj()
    pods = [dying, waiting("next", cpu="2")]
    answer = start_times(QuestionCluster([lost, *pods], read_setup(), now_ns=NOW_NS), "next", seeds=(0,))
    assert answer.median_ns is None


def test_a_pod_of_another_scheduler_and_a_workload_without_pods_get_their_reasons() -> None:
    foreign = make_pod("next").req(cpu="1").scheduler("volcano").obj()
    text = start_text(start_times(cluster(foreign), "next", seeds=(0,)))
    assert text[0] == 'pod/default/next does not start within 7 d; no scheduler named "volcano" is configured.'
    quota = make_object(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": "default"},
            "spec": {"hard": {"pods": "0"}},
        }
    )
    web = make_object(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "default", "uid": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "x"}]},
                },
            },
        }
    )
    with pytest.raises(InputError, match="got no pods: 2 replicas of replicaset/default/web were never created: forb"):
        start_times(cluster(quota, web), "replicaset/web", seeds=(0,))


@pytest.mark.parametrize(
    ("suspend", "pods", "want"),
    [
        pytest.param(False, 1, "starts in 0 s.", id="one pod per seed"),
        pytest.param(True, 0, "does not start within 7 d; no pods are created for it.", id="a suspended job"),
    ],
)
def test_a_job_without_pods_starts_the_pods_that_it_creates(suspend: bool, pods: int, want: str) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    job = make_object(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "default", "uid": "train"},
            "spec": {"suspend": suspend, "completions": 1, "parallelism": 1, "template": template},
        }
    )
    answer = start_times(cluster(job), "job/train", seeds=(0, 1))
    assert answer.pods == pods
    lines = start_text(answer)
    assert lines[0] == f"job/default/train {want}"
    assert lines[2].startswith("Assumptions" if suspend else "  POD ")
