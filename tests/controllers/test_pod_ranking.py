"""The order in which pods are deleted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time
from bayplan.controllers.pod_ranking import rank_active, rank_for_deletion
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.pod import Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus

NOW = 100_000


def make(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready: bool = True,
    age: int = 1000,
    ready_for: int | None = None,
    cost: str | None = None,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    setup_restarts: int = 0,
    uid: str = "",
) -> Pod:
    """Return a pod of an age in seconds at `NOW`."""
    since = format_time((NOW - (age if ready_for is None else ready_for)) * SECOND_NS)
    conditions = (PodCondition(type="Ready", status="True" if ready else "False", last_transition_time=since),)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=uid or name,
            creation_timestamp=format_time((NOW - age) * SECOND_NS),
            annotations={} if cost is None else {"controller.kubernetes.io/pod-deletion-cost": cost},
        ),
        spec=PodSpec(
            node_name=node,
            init_containers=(Container(name="sidecar", restart_policy="Always"), Container(name="setup")),
        ),
        status=PodStatus(
            phase=phase,
            conditions=conditions,
            container_statuses=(ContainerStatus(name="c", restart_count=restarts),),
            init_container_statuses=(
                ContainerStatus(name="sidecar", restart_count=sidecar_restarts),
                ContainerStatus(name="setup", restart_count=setup_restarts),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(make("b", node=""), make("a"), id="unassigned before assigned"),
        pytest.param(make("b", phase="Pending"), make("a"), id="pending before running"),
        pytest.param(make("b", phase="Unknown"), make("a"), id="unknown before running"),
        pytest.param(make("b", ready=False), make("a"), id="not ready before ready"),
        pytest.param(make("b", cost="-5"), make("a", cost="3"), id="low deletion cost before high"),
        pytest.param(make("b"), make("a", cost="1"), id="no cost is zero"),
        pytest.param(make("b", cost="-1"), make("a", cost="+9"), id="a cost with a plus is zero"),
        pytest.param(make("b", cost="-1"), make("a", cost="99999999999"), id="a cost beyond 32 bits is zero"),
        pytest.param(make("b", age=100), make("a", age=1000), id="young before old"),
        pytest.param(make("b", age=1000), make("c", age=1001), id="of about the same age, the smaller uid"),
        pytest.param(make("b", age=2000, ready_for=10), make("a", age=2000, ready_for=999), id="less time ready"),
        pytest.param(make("b", restarts=4), make("a", restarts=1), id="with the same ready time, more restarts"),
        pytest.param(make("b", sidecar_restarts=4), make("a"), id="with as many restarts, more restarts of a sidecar"),
        pytest.param(
            make("b", restarts=1), make("a", sidecar_restarts=9), id="restarts of containers before those of sidecars"
        ),
        pytest.param(
            make("a", age=1000, ready_for=10),
            make("b", age=1001, ready_for=10, setup_restarts=9),
            id="restarts of other init containers are ignored",
        ),
    ],
)
def test_pods_of_a_replica_set_are_ranked_for_deletion_like_upstream(first: Pod, second: Pod) -> None:
    for pods in ([first, second], [second, first]):
        assert rank_for_deletion(pods, pods, NOW * SECOND_NS) == [first, second]


def test_pods_sharing_a_node_with_more_related_pods_are_deleted_first() -> None:
    crowded, alone, sibling = make("b", node="n1"), make("a", node="n2"), make("c", node="n1")
    assert rank_for_deletion([alone, crowded], [alone, crowded, sibling], NOW * SECOND_NS) == [crowded, alone]
    finished = make("d", node="n2", phase="Succeeded")
    related = [alone, crowded, sibling, finished, finished]
    assert rank_for_deletion([alone, crowded], related, NOW * SECOND_NS) == [crowded, alone]


def test_pods_of_a_job_are_ranked_by_exact_times() -> None:
    older, younger = make("a", age=1001), make("b", age=1000)
    assert rank_active([older, younger]) == [younger, older]
    with_sidecar = make("b", sidecar_restarts=9)
    assert rank_active([make("a"), with_sidecar])[0] is with_sidecar
    unknown = replace(younger, metadata=replace(younger.metadata, creation_timestamp=None))
    assert rank_active([older, unknown])[0] is unknown
    restarted = make("b", restarts=4)
    assert rank_active([make("a", restarts=1), restarted])[0] is restarted
    pending = make("c", phase="Pending", ready=False)
    assert rank_active([older, pending, younger])[0] is pending
