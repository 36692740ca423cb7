"""StatefulSets: ordinals, order, claims, updates."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.controllers.stateful_pods import ordinal_of
from bayplan.controllers.writer import Propagation
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.objects.workloads import StatefulSet
from tests.cluster.cluster_fixture import ClusterFixture, pod, template, workload

CLAIMS = [{"metadata": {"name": "data", "labels": {"tier": "fast"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
PARALLEL = {"podManagementPolicy": "Parallel"}


def db(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    return workload("StatefulSet", "db", image=image, **{"replicas": 3, "serviceName": "db-service", **spec})


def stored(fixture: ClusterFixture) -> StatefulSet:
    found = fixture.store.get(StatefulSet, "default/db")
    assert found is not None
    return found


def applied(fixture: ClusterFixture, **spec: Any) -> None:
    fixture.apply(db(**spec))
    fixture.settle()


@pytest.mark.parametrize(
    ("name", "want"),
    [("db-0", 0), ("my-db-12", 12), ("db", -1), ("db-", -1), ("db-x", -1), ("db-2147483648", -1), ("-7", 7)],
)
def test_ordinal_of_parses_the_ordinal_of_a_pod_name(name: str, want: int) -> None:
    assert ordinal_of(name) == want


def test_pods_have_ordinal_names_labels_and_hostnames() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture)
    revision = stored(fixture).status.update_revision
    assert revision.startswith("db-")
    for ordinal, item in enumerate(fixture.pods()):
        assert item.metadata.name == f"db-{ordinal}"
        assert item.metadata.generate_name == "db-"
        assert item.metadata.labels == {
            "app": "x",
            "statefulset.kubernetes.io/pod-name": f"db-{ordinal}",
            "apps.kubernetes.io/pod-index": str(ordinal),
            "controller-revision-hash": revision,
        }
        assert (item.spec.hostname, item.spec.subdomain) == (f"db-{ordinal}", "db-service")
    assert fixture.added(Pod) == ["db-0", "db-1", "db-2"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, ["db-0"], id="in order, one at a time"),
        pytest.param(PARALLEL, ["db-0", "db-1", "db-2"], id="in parallel, all at once"),
    ],
)
def test_an_unready_pod_blocks_the_next_pod_unless_parallel(spec: dict[str, Any], want: list[str]) -> None:
    fixture = ClusterFixture(binds=False)
    applied(fixture, **spec)
    assert fixture.names() == want


def test_pods_start_in_order_when_the_previous_one_is_ready() -> None:
    fixture = ClusterFixture(nodes=1, start_delay_s=10)
    applied(fixture)
    seen = []
    for seconds in (0, 10, 20, 30):
        fixture.run_until(seconds)
        seen.append(fixture.phases())
    assert seen == [{"Pending": 1}, {"Running": 1, "Pending": 1}, {"Running": 2, "Pending": 1}, {"Running": 3}]


def test_min_ready_seconds_delays_the_next_pod() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, minReadySeconds=5)
    seen = []
    for seconds in (0, 5, 10, 15):
        fixture.run_until(seconds)
        seen.append((len(fixture.names()), stored(fixture).status.available_replicas))
    assert seen == [(1, 0), (2, 1), (3, 2), (3, 3)]


def test_ordinals_start_at_the_configured_number() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, ordinals={"start": 5})
    assert fixture.names() == ["db-5", "db-6", "db-7"]


@pytest.mark.parametrize(
    ("spec", "first"),
    [
        pytest.param({}, ["db-4"], id="in order, from the top, one at a time"),
        pytest.param(PARALLEL, ["db-4", "db-3", "db-2"], id="in parallel, all at once"),
    ],
)
def test_scaling_down_deletes_the_highest_ordinals_first(spec: dict[str, Any], first: list[str]) -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    applied(fixture, replicas=5, **spec)
    applied(fixture, replicas=2, **spec)
    leaving = [item.metadata.name for item in fixture.pods() if item.metadata.deletion_timestamp is not None]
    assert sorted(leaving, reverse=True) == first
    fixture.run_until(100)
    assert fixture.names() == ["db-0", "db-1"]
    assert fixture.deleted(Pod) == ["db-4", "db-3", "db-2"]


def test_an_ordered_set_with_a_pending_pod_does_not_scale_down() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, replicas=3)
    fixture.binds = False
    fixture.delete(Pod, "default/db-0")
    fixture.settle()
    applied(fixture, replicas=2)
    assert fixture.names() == ["db-0", "db-1", "db-2"]
    fixture.binds = True
    fixture.settle()
    assert fixture.names() == ["db-0", "db-1"]


def test_a_deleted_pod_is_recreated_with_its_name_after_its_grace_period() -> None:
    fixture = ClusterFixture(nodes=1, termination_s=60)
    applied(fixture)
    before = fixture.pods()[1]
    fixture.delete(Pod, "default/db-1")
    fixture.settle()
    assert fixture.phases() == {"Running": 2, "Terminating": 1}
    fixture.run_until(30)
    after = fixture.pods()[1]
    assert after.metadata.name == "db-1"
    assert after.metadata.uid != before.metadata.uid
    assert after.status.phase == "Running"


@pytest.mark.parametrize("exit_code", ["0", "1"])
def test_a_finished_pod_is_recreated(exit_code: str) -> None:
    fixture = ClusterFixture(nodes=1)
    annotations = {"bayplan.io/run-time": "90s", "bayplan.io/exit-code": exit_code}
    applied(fixture, replicas=1, template=template(annotations=annotations))
    fixture.run_until(90)
    assert fixture.phases() == {"Running": 1}
    assert fixture.added(Pod) == ["db-0", "db-0"]


def test_a_pod_with_a_conflicting_name_is_reported() -> None:
    fixture = ClusterFixture(nodes=1)
    fixture.apply(pod("db-1"))
    applied(fixture)
    assert fixture.names() == ["db-0", "db-1"]
    assert list(fixture.cluster.failures()) == ["StatefulSet default/db"]


def test_a_recreated_set_adopts_orphaned_pods() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture)
    before = [item.metadata.uid for item in fixture.pods()]
    fixture.delete(StatefulSet, "default/db", propagation=Propagation.ORPHAN)
    fixture.settle()
    assert {item.metadata.owner_references for item in fixture.pods()} == {()}
    applied(fixture)
    assert [item.metadata.uid for item in fixture.pods()] == before
    assert {item.metadata.owner_references[0].uid for item in fixture.pods()} == {stored(fixture).metadata.uid}
    assert stored(fixture).status.ready_replicas == 3
    fixture.store.check_invariants()


# --- claims -----------------------------------------------------------------------------------------------------------


def claims(fixture: ClusterFixture) -> dict[str, list[str]]:
    """Return the owners' kinds of each claim."""
    found = fixture.store.all(PersistentVolumeClaim)
    return {item.metadata.name: [owner.kind for owner in item.metadata.owner_references] for item in found}


def test_each_pod_gets_a_claim_from_the_template() -> None:
    fixture = ClusterFixture(nodes=1)
    body = template(volumes=[{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}])
    applied(fixture, replicas=2, volumeClaimTemplates=CLAIMS, template=body)
    assert claims(fixture) == {"data-db-0": [], "data-db-1": []}
    claim = fixture.store.get(PersistentVolumeClaim, "default/data-db-0")
    assert claim is not None
    assert claim.metadata.labels == {"tier": "fast", "app": "x"}
    assert claim.status.phase == "Pending"
    for item in fixture.pods():
        data, tmp = item.spec.volumes
        assert data.persistent_volume_claim is not None
        assert data.persistent_volume_claim.claim_name == f"data-{item.metadata.name}"
        assert tmp.name == "tmp"


def test_a_claim_is_reused_after_scaling_down_and_up() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, replicas=2, volumeClaimTemplates=CLAIMS)
    before = fixture.store.get(PersistentVolumeClaim, "default/data-db-1")
    applied(fixture, replicas=1, volumeClaimTemplates=CLAIMS)
    applied(fixture, replicas=2, volumeClaimTemplates=CLAIMS)
    assert fixture.store.get(PersistentVolumeClaim, "default/data-db-1") is before


@pytest.mark.parametrize(
    ("policy", "running", "shrunk", "deleted"),
    [
        pytest.param(
            {"whenDeleted": "Retain", "whenScaled": "Retain"},
            {"data-db-0": [], "data-db-1": []},
            {"data-db-0", "data-db-1"},
            {"data-db-0", "data-db-1"},
            id="kept",
        ),
        pytest.param(
            {"whenDeleted": "Delete", "whenScaled": "Retain"},
            {"data-db-0": ["StatefulSet"], "data-db-1": ["StatefulSet"]},
            {"data-db-0", "data-db-1"},
            set(),
            id="deleted with the set",
        ),
        pytest.param(
            {"whenDeleted": "Retain", "whenScaled": "Delete"},
            {"data-db-0": [], "data-db-1": []},
            {"data-db-0"},
            {"data-db-0"},
            id="deleted when the set scales down",
        ),
        pytest.param(
            {"whenDeleted": "Delete", "whenScaled": "Delete"},
            {"data-db-0": ["StatefulSet"], "data-db-1": ["StatefulSet"]},
            {"data-db-0"},
            set(),
            id="deleted in both cases",
        ),
    ],
)
def test_the_retention_policy_determines_when_claims_are_deleted(
    policy: dict[str, str], running: dict[str, list[str]], shrunk: set[str], deleted: set[str]
) -> None:
    fixture = ClusterFixture(nodes=1)
    spec = {"volumeClaimTemplates": CLAIMS, "persistentVolumeClaimRetentionPolicy": policy}
    applied(fixture, replicas=2, **spec)
    assert claims(fixture) == running
    applied(fixture, replicas=1, **spec)
    assert set(claims(fixture)) == shrunk
    fixture.delete(StatefulSet, "default/db")
    fixture.settle()
    assert set(claims(fixture)) == deleted
    fixture.store.check_invariants()


# --- updates ----------------------------------------------------------------------------------------------------------


def images(fixture: ClusterFixture) -> list[str]:
    return [item.spec.containers[0].image for item in fixture.pods()]


def test_a_rolling_update_replaces_one_pod_at_a_time_from_the_highest_ordinal() -> None:
    fixture = ClusterFixture(nodes=1, start_delay_s=10)
    applied(fixture)
    fixture.run_until(30)
    applied(fixture, image="app:2")
    seen = [images(fixture)]
    for seconds in (40, 50, 60):
        fixture.run_until(seconds)
        seen.append(images(fixture))
    assert seen == [
        ["app:1", "app:1", "app:2"],
        ["app:1", "app:2", "app:2"],
        ["app:2", "app:2", "app:2"],
        ["app:2", "app:2", "app:2"],
    ]
    status = stored(fixture).status
    assert status.current_revision == status.update_revision
    assert (status.current_replicas, status.updated_replicas) == (3, 3)


def test_a_rolling_update_stops_at_the_partition() -> None:
    fixture = ClusterFixture(nodes=1)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    applied(fixture, updateStrategy=strategy)
    applied(fixture, updateStrategy=strategy, image="app:2")
    assert images(fixture) == ["app:1", "app:2", "app:2"]
    fixture.delete(Pod, "default/db-0")
    fixture.settle()
    assert images(fixture) == ["app:1", "app:2", "app:2"]
    status = stored(fixture).status
    assert status.current_revision != status.update_revision
    assert (status.current_replicas, status.updated_replicas) == (1, 2)


def test_on_delete_updates_only_deleted_pods() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, updateStrategy={"type": "OnDelete"})
    applied(fixture, updateStrategy={"type": "OnDelete"}, image="app:2")
    assert images(fixture) == ["app:1", "app:1", "app:1"]
    fixture.delete(Pod, "default/db-1")
    fixture.settle()
    assert images(fixture) == ["app:1", "app:2", "app:1"]


def test_a_rollback_restores_the_old_revision() -> None:
    fixture = ClusterFixture(nodes=1)
    revisions = []
    for image in ("app:1", "app:2", "app:1"):
        applied(fixture, image=image)
        revisions.append(stored(fixture).status.update_revision)
    assert revisions[0] == revisions[2] != revisions[1]
    assert images(fixture) == ["app:1"] * 3


def test_pods_of_a_recorded_set_are_not_replaced_despite_a_different_hash() -> None:
    first = ClusterFixture(nodes=1)
    applied(first)
    fixture = ClusterFixture()
    [item] = first.store.all(StatefulSet)
    renamed = str(item.status.update_revision)
    fixture.apply(*first.store.nodes.values(), *first.store.pods.values(), item)
    # Pods and status keep the recorded name of the revision, although Bayplan would give it another name.
    assert fixture.names() == ["db-0", "db-1", "db-2"]
    fixture.settle()
    assert fixture.deleted(Pod) == []
    assert stored(fixture).status.update_revision == renamed


def test_an_ordered_set_with_400_pods_becomes_ready_and_recovers() -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, replicas=400)
    assert stored(fixture).status.ready_replicas == 400
    fixture.delete(Pod, "default/db-7")
    fixture.settle()
    assert stored(fixture).status.ready_replicas == 400
    fixture.store.check_invariants()


@pytest.mark.parametrize("strategy", ["OnDelete", "RollingUpdate"])
def test_an_adopted_pod_keeps_its_volumes_and_is_replaced_when_it_is_deleted(strategy: str) -> None:
    fixture = ClusterFixture(nodes=1)
    applied(fixture, replicas=2)
    fixture.delete(StatefulSet, "default/db", propagation=Propagation.ORPHAN)
    fixture.settle()
    applied(fixture, replicas=2, volumeClaimTemplates=CLAIMS, updateStrategy={"type": strategy})
    fixture.run_until(100)
    assert [(len(each.metadata.owner_references), each.spec.volumes) for each in fixture.pods()] == [(1, ()), (1, ())]
    fixture.delete(Pod, "default/db-0")
    fixture.run_until(200)
    assert [len(each.spec.volumes) for each in fixture.pods()] == [1, 0]
