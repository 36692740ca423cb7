"""DaemonSets: a pod on every eligible node, tolerations, updates."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.controllers.daemon_nodes import (
    Eligibility,
    NodeEligibility,
    daemon_tolerations,
    pinned_spec,
    target_node,
)
from bayplan.objects.kinds import decode
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodSpec, Toleration
from bayplan.objects.workloads import DaemonSet
from tests.cluster.cluster_fixture import ClusterFixture, as_pod, node, pod, template, workload

NO_SCHEDULE = {"key": "only", "value": "x", "effect": "NoSchedule"}
NO_EXECUTE = {"key": "only", "value": "x", "effect": "NoExecute"}


def agent(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    return workload("DaemonSet", "agent", image=image, **spec)


def stored(fixture: ClusterFixture) -> DaemonSet:
    found = fixture.store.get(DaemonSet, "default/agent")
    assert found is not None
    return found


def applied(fixture: ClusterFixture, **spec: Any) -> None:
    fixture.apply(agent(**spec))
    fixture.settle()


def places(fixture: ClusterFixture) -> list[str]:
    return sorted(item.spec.node_name for item in fixture.pods())


def numbers(fixture: ClusterFixture) -> tuple[int, int, int, int, int]:
    """Return desired, current, misscheduled, ready and updated."""
    status = stored(fixture).status
    return (
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_misscheduled,
        status.number_ready,
        status.updated_number_scheduled,
    )


def test_a_daemon_set_creates_a_pod_per_node_that_the_scheduler_binds() -> None:
    fixture = ClusterFixture(nodes=3, binds=False)
    applied(fixture)
    assert numbers(fixture) == (3, 3, 0, 0, 3)
    assert [item.spec.node_name for item in fixture.pods()] == ["", "", ""]
    assert sorted(map(target_node, fixture.pods())) == ["node-0", "node-1", "node-2"]
    fixture.binds = True
    fixture.settle()
    assert places(fixture) == ["node-0", "node-1", "node-2"]
    assert numbers(fixture) == (3, 3, 0, 3, 3)


def test_pods_have_the_revision_hash_and_the_daemon_tolerations() -> None:
    fixture = ClusterFixture(nodes=2)
    applied(fixture)
    first, second = fixture.pods()
    digest = first.metadata.labels["controller-revision-hash"]
    assert first.metadata.labels == {"app": "x", "controller-revision-hash": digest}
    assert first.metadata.labels is second.metadata.labels
    assert [(item.key, item.effect, item.toleration_seconds) for item in first.spec.tolerations] == [
        ("node.kubernetes.io/not-ready", "NoExecute", None),
        ("node.kubernetes.io/unreachable", "NoExecute", None),
        ("node.kubernetes.io/disk-pressure", "NoSchedule", None),
        ("node.kubernetes.io/memory-pressure", "NoSchedule", None),
        ("node.kubernetes.io/pid-pressure", "NoSchedule", None),
        ("node.kubernetes.io/unschedulable", "NoSchedule", None),
    ]
    assert first.spec.containers is second.spec.containers


@pytest.mark.parametrize(
    ("tolerations", "host_network", "want"),
    [
        pytest.param((), False, 6, id="what every daemon tolerates"),
        pytest.param((), True, 7, id="on the host network also an unavailable network"),
        pytest.param(
            (Toleration(key="mine", operator="Exists"),), False, 7, id="in addition to the pod's own tolerations"
        ),
        pytest.param(
            (
                Toleration(
                    key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute", toleration_seconds=9
                ),
            ),
            False,
            6,
            id="a limit of time is lifted",
        ),
    ],
)
def test_daemon_tolerations_are_added_without_a_time_limit(
    tolerations: tuple[Toleration, ...], host_network: bool, want: int
) -> None:
    got = daemon_tolerations(PodSpec(tolerations=tolerations, host_network=host_network))
    assert len(got) == want
    assert not any(item.toleration_seconds for item in got)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="no affinity"),
        pytest.param({"affinity": {"podAffinity": {}}}, id="no node affinity"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                        },
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                        ],
                    }
                }
            },
            id="required terms are replaced, preferred ones stay",
        ),
    ],
)
def test_node_affinity_pins_a_pod_to_its_node(spec: dict[str, Any]) -> None:
    before = as_pod(decode(pod("p", **spec))).spec
    after = pinned_spec(before, "node-7")
    assert target_node(Pod(spec=after)) == "node-7"
    assert after.affinity is not None
    affinity = after.affinity.node_affinity
    assert affinity is not None
    required = affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    assert [len(term.match_expressions) for term in required.node_selector_terms] == [0]
    had = before.affinity.node_affinity if before.affinity is not None else None
    if had is not None:
        preferred = affinity.preferred_during_scheduling_ignored_during_execution
        assert preferred is had.preferred_during_scheduling_ignored_during_execution


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, ["plain", "zoned"], id="nodes without taints that matter"),
        pytest.param({"nodeSelector": {"zone": "a"}}, ["zoned"], id="a node selector"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}]
                        }
                    }
                }
            },
            ["plain"],
            id="required node affinity",
        ),
        pytest.param({"nodeName": "plain"}, ["plain"], id="a node by name"),
        pytest.param(
            {"tolerations": [{"key": "only", "operator": "Exists"}]},
            ["executing", "plain", "tainted", "zoned"],
            id="a toleration",
        ),
        pytest.param(
            {"tolerations": [{"key": "only", "operator": "Exists", "effect": "NoSchedule"}]},
            ["plain", "tainted", "zoned"],
            id="a toleration of one effect",
        ),
    ],
)
def test_pods_are_created_on_nodes_matching_selector_affinity_and_tolerations(
    spec: dict[str, Any], want: list[str]
) -> None:
    fixture = ClusterFixture()
    fixture.apply(
        node("plain"),
        node("zoned", labels={"zone": "a"}, taints=[{"key": "soft", "effect": "PreferNoSchedule"}]),
        node("tainted", taints=[NO_SCHEDULE]),
        node("executing", taints=[NO_EXECUTE]),
    )
    applied(fixture, template=template(**spec))
    assert places(fixture) == want


def test_new_nodes_get_pods_and_deleted_nodes_lose_them() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture)
    fixture.apply(node("late"))
    fixture.settle()
    assert places(fixture) == ["late", "node-0"]
    fixture.delete(Node, "node-0")
    fixture.settle()
    assert places(fixture) == ["late"]
    assert numbers(fixture) == (1, 1, 0, 1, 1)


def test_an_unbound_daemon_pod_is_deleted_with_its_node() -> None:
    fixture = ClusterFixture(nodes=2, binds=False)
    applied(fixture)
    fixture.delete(Node, "node-0")
    fixture.settle()
    assert list(map(target_node, fixture.pods())) == ["node-1"]


@pytest.mark.parametrize(
    ("taint", "want"),
    [
        pytest.param(
            NO_SCHEDULE, (["node-0", "node-1"], (1, 1, 1, 1, 1)), id="NoSchedule: the pod stays, misscheduled"
        ),
        pytest.param(NO_EXECUTE, (["node-1"], (1, 1, 0, 1, 1)), id="NoExecute: the pod is deleted"),
    ],
)
def test_a_new_taint_leaves_pods_misscheduled_or_deletes_them(
    taint: dict[str, str], want: tuple[list[str], tuple[int, ...]]
) -> None:
    fixture = ClusterFixture(nodes=2)
    applied(fixture)
    fixture.apply(node("node-0", taints=[taint]))
    fixture.settle()
    assert (places(fixture), numbers(fixture)) == want


def test_a_node_label_change_moves_the_pod() -> None:
    fixture = ClusterFixture()
    fixture.apply(node("a", labels={"role": "yes"}), node("b"))
    applied(fixture, template=template(nodeSelector={"role": "yes"}))
    assert places(fixture) == ["a"]
    fixture.apply(node("a", labels={"role": "no"}), node("b", labels={"role": "yes"}))
    fixture.settle()
    assert places(fixture) == ["b"]


def test_a_cordoned_node_gets_a_daemon_pod() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.cluster.cordon("node-0", 0)
    applied(fixture)
    assert places(fixture) == ["node-0"]


def test_a_deleted_pod_is_recreated_after_its_grace_period() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    applied(fixture)
    fixture.delete(Pod, f"default/{fixture.names()[0]}")
    fixture.settle()
    assert fixture.phases() == {"Terminating": 1}
    fixture.run_until(30)
    assert fixture.phases() == {"Running": 1}


def test_a_succeeded_pod_is_replaced_immediately() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, template=template(annotations={"bayplan.io/run-time": "5s"}))
    fixture.run_until(17)
    assert len(fixture.added(Pod)) == 4


def test_a_repeatedly_failing_pod_is_replaced_with_exponential_backoff() -> None:
    fixture = ClusterFixture(nodes=1)
    annotations = {"bayplan.io/run-time": "1s", "bayplan.io/exit-code": "1"}
    applied(fixture, template=template(annotations=annotations))
    fixture.run_until(60)
    removed = [event for event in fixture.events if event.kind is Pod and event.type == "DELETED"]
    # The first deletion comes after 1 s, the next ones at least 1, 2, 4, 8 and 16 seconds after the previous one.
    assert len(removed) == 6


# --- updates ----------------------------------------------------------------------------------------------------------


def images(fixture: ClusterFixture) -> list[str]:
    return sorted(item.spec.containers[0].image for item in fixture.pods())


@pytest.mark.parametrize(
    ("strategy", "seen"),
    [
        pytest.param({}, [1, 2, 3, 4], id="one node at a time"),
        pytest.param({"rollingUpdate": {"maxUnavailable": 2}}, [2, 4, 4, 4], id="two nodes at a time"),
        pytest.param({"rollingUpdate": {"maxUnavailable": "75%"}}, [3, 4, 4, 4], id="three of four"),
        pytest.param({"type": "OnDelete"}, [0, 0, 0, 0], id="on deletion only"),
    ],
)
def test_a_rolling_update_obeys_max_unavailable_and_on_delete_waits(strategy: dict[str, Any], seen: list[int]) -> None:
    fixture = ClusterFixture(nodes=4, start_delay_s=10)
    spec = {"updateStrategy": {"type": "RollingUpdate", **strategy}}
    applied(fixture, **spec)
    fixture.run_until(10)
    applied(fixture, image="app:2", **spec)
    got = []
    for seconds in (10, 20, 30, 40):
        fixture.run_until(seconds)
        got.append(images(fixture).count("app:2"))
    assert got == seen


def test_a_surge_starts_the_new_pod_before_deleting_the_old_one() -> None:
    fixture = ClusterFixture(nodes=3, start_delay_s=10)
    spec = {"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    applied(fixture, **spec)
    fixture.run_until(10)
    applied(fixture, image="app:2", **spec)
    assert (images(fixture), len(fixture.names())) == (["app:1", "app:1", "app:1", "app:2"], 4)
    fixture.run_until(20)
    assert images(fixture) == ["app:1", "app:1", "app:2", "app:2"]
    fixture.run_until(60)
    assert images(fixture) == ["app:2"] * 3
    assert numbers(fixture) == (3, 3, 0, 3, 3)


def test_an_update_replaces_pending_pods_immediately() -> None:
    fixture = ClusterFixture(nodes=3, binds=False)
    applied(fixture)
    applied(fixture, image="app:2")
    assert images(fixture) == ["app:2"] * 3


def test_min_ready_seconds_delays_a_rolling_update() -> None:
    fixture = ClusterFixture(nodes=2)
    applied(fixture, minReadySeconds=10)
    assert stored(fixture).status.number_available == 0
    fixture.run_until(10)
    assert stored(fixture).status.number_available == 2
    applied(fixture, minReadySeconds=10, image="app:2")
    assert images(fixture) == ["app:1", "app:2"]
    fixture.run_until(20)
    assert images(fixture) == ["app:2", "app:2"]


def test_a_surge_waits_exactly_min_ready_seconds() -> None:
    fixture = ClusterFixture(nodes=2)
    spec = {"minReadySeconds": 10, "updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
    applied(fixture, **spec)
    fixture.run_until(10)
    applied(fixture, image="app:2", **spec)
    fixture.run_until(19)
    assert images(fixture) == ["app:1", "app:1", "app:2"]
    fixture.run_until(29)
    assert images(fixture) == ["app:1", "app:2", "app:2"]
    fixture.run_until(30)
    assert images(fixture) == ["app:2", "app:2"]


def test_a_rollback_restores_the_old_revision_hash() -> None:
    fixture = ClusterFixture(nodes=1)
    hashes = []
    for image in ("app:1", "app:2", "app:1"):
        applied(fixture, image=image)
        hashes.append(fixture.pods()[0].metadata.labels["controller-revision-hash"])
    assert hashes[0] == hashes[2] != hashes[1]


def test_pods_of_a_recorded_set_are_not_replaced_despite_a_different_hash() -> None:
    fixture = ClusterFixture(nodes=2, binds=False)
    applied(fixture)
    recorded = []
    for item in fixture.pods():
        document = pod(item.metadata.name, uid=item.metadata.uid, nodeName=target_node(item))
        document["metadata"]["labels"] = {"app": "x", "controller-revision-hash": "recorded"}
        document["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds", "controller": True}
        ]
        recorded.append(document)
    other = ClusterFixture(nodes=2)
    daemon_set = agent()
    daemon_set["metadata"]["uid"] = "ds"
    daemon_set["metadata"]["generation"] = 4
    daemon_set["status"] = {"observedGeneration": 4, "updatedNumberScheduled": 2}
    other.apply(*recorded, daemon_set)
    other.settle()
    assert other.deleted(Pod) == []
    assert numbers(other) == (2, 2, 0, 2, 2)


def test_a_recorded_rollout_continues_towards_the_hash_of_the_newest_pod() -> None:
    recorded = []
    for number, (hash_, day) in enumerate((("new", "20"), ("old", "03"), ("older", "01"))):
        document = pod(f"agent-{number}", uid=f"p{number}", nodeName=f"node-{number}")
        document["metadata"]["creationTimestamp"] = f"2026-10-{day}T08:00:00Z"
        document["metadata"]["labels"] = {"app": "x", "controller-revision-hash": hash_}
        document["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds", "controller": True}
        ]
        recorded.append(document)
    daemon_set = agent()
    daemon_set["metadata"] |= {"uid": "ds", "generation": 4, "creationTimestamp": "2026-10-02T08:00:00Z"}
    daemon_set["status"] = {"observedGeneration": 4, "updatedNumberScheduled": 1}
    fixture = ClusterFixture(nodes=3)
    fixture.apply(*recorded, daemon_set)
    fixture.settle()
    assert {item.metadata.labels["controller-revision-hash"] for item in fixture.pods()} == {"new"}
    assert "agent-0" in {item.metadata.name for item in fixture.pods()}


@pytest.mark.parametrize(
    ("taints", "want"),
    [
        pytest.param([], Eligibility(should_run=True, may_stay=True), id="no taint"),
        pytest.param([NO_SCHEDULE], Eligibility(should_run=False, may_stay=True), id="NoSchedule keeps running pods"),
        pytest.param([NO_EXECUTE], Eligibility(should_run=False, may_stay=False), id="NoExecute keeps no pods"),
    ],
)
def test_taints_determine_whether_a_node_should_run_a_pod_and_whether_one_may_stay(
    taints: list[dict[str, str]], want: Eligibility
) -> None:
    fixture = ClusterFixture(nodes=0)
    fixture.apply(node("n", taints=taints), agent())
    assert NodeEligibility(stored(fixture).spec.template).eligibility_of(fixture.store.nodes["n"]) == want


def test_adding_a_node_evaluates_only_that_node(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = ClusterFixture(nodes=100)
    applied(fixture)
    looks: list[str] = []
    original = NodeEligibility.eligibility_of

    def counting(self: NodeEligibility, item: Node) -> Eligibility:
        looks.append(item.metadata.name)
        return original(self, item)

    monkeypatch.setattr(NodeEligibility, "eligibility_of", counting)
    for number in range(10):
        fixture.apply(node(f"late-{number}"))
        fixture.settle()
    assert len(looks) == 10
    assert numbers(fixture) == (110, 110, 0, 110, 110)
