"""Default spreading in a target: it decides as the source does, and no controller acts on the copied pods."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.bridge.bridge import Bridge, BridgeOptions
from bayplan.app.scheduler_setup import read_setup
from bayplan.base.durations import SECOND_NS
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.http_api.forks import ForkSetup, objects_now, simulator_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.sync.followed_kinds import BY_PLURAL
from bayplan.sync.recording import redacted
from bayplan.sync.translation import translate
from tests.sync.follower_fixture import NS, FollowerFixture
from tests.sync.spread_agreement import HOSTNAME, KINDS, Cluster, decisions, follow, local_documents, without_owners
from tests.sync.test_translation import Nothing

SAMPLE = 60
"""Number of clusters in every test run; `make test-sync` compares 500."""

pytestmark = pytest.mark.usefixtures("way")


def test_a_follower_spreads_pods_like_its_source() -> None:
    owners_matter = 0
    for seed in range(SAMPLE):
        cluster = Cluster(seed)
        there = decisions(cluster.documents(), cluster.waiting)
        assert decisions(local_documents(follow(cluster)), cluster.waiting) == there, f"seed {seed}"
        owners_matter += there != decisions(without_owners(cluster.documents()), cluster.waiting)
    assert owners_matter > SAMPLE // 2, "the clusters are such that owners matter"


def three_replicas() -> FollowerFixture:
    """Return a follower of three replicas, two of which run; without spreading the largest node would have the third."""
    fixture = FollowerFixture(KINDS)
    for name, cpu in (("big", "64"), ("second", "8"), ("third", "8")):
        amounts = {"cpu": cpu, "memory": f"{cpu}Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        fixture.put("nodes", {"metadata": {"name": name, "labels": {HOSTNAME: name}}, "status": status})
    labels = {"app": "web"}
    containers = [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, "serviceAccountName": "web"}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    metadata = {"name": "web-7d9f", "namespace": NS, "ownerReferences": [deployment]}
    uid = fixture.put("replicasets", {"metadata": metadata, "spec": spec})["metadata"]["uid"]  # type: ignore[index]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9f", "uid": uid, "controller": True}
    for number, node in enumerate(("big", "big", "")):
        own = {"name": f"web-{number}", "namespace": NS, "labels": labels, "ownerReferences": [owner]}
        pod_spec: dict[str, Any] = {"containers": containers} | ({"nodeName": node} if node else {})
        phase = "Running" if node else "Pending"
        fixture.put("pods", {"metadata": own, "spec": pod_spec, "status": {"phase": phase}})
    fixture.start()
    fixture.work()
    return fixture


def test_controllers_ignore_copied_workloads() -> None:
    fixture = three_replicas()
    options = BridgeOptions(pods=KubeletOptions(container_statuses=True))
    bridge = Bridge(fixture.here.backend, seed=1, options=options)
    # This pod has no controller, although the ReplicaSet selects it.
    loose = {
        "metadata": {"name": "loose", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    fixture.here.ask("POST", f"/api/v1/namespaces/{NS}/pods", loose)
    while bridge.advance(bridge.now_ns()):
        pass
    assert bridge.bugs() == {}
    assert sorted(pod.metadata.name for pod in bridge.store.pods.values()) == ["loose", "web-0", "web-1", "web-2"]
    found = bridge.store.pods[f"{NS}/loose"]
    assert found.metadata.owner_references == ()
    (copy,), _ = fixture.here.list("replicasets")
    assert copy["spec"]["replicas"] == 0  # type: ignore[index]
    fixture.deliver_local_events()
    fixture.work()
    assert sorted(pod.metadata.name for pod in bridge.store.pods.values()) == ["loose", "web-0", "web-1", "web-2"]


def test_deleting_a_copied_workload_does_not_delete_its_pods() -> None:
    fixture = three_replicas()
    bridge = Bridge(fixture.here.backend, seed=1, options=BridgeOptions())
    fixture.remove("replicasets", "web-7d9f")
    fixture.follow()
    while bridge.advance(bridge.now_ns()):
        pass
    assert fixture.here.list("replicasets")[0] == []
    assert len(bridge.store.pods) == 3


def test_a_fork_of_a_follower_spreads_pods_like_the_source() -> None:
    fixture = three_replicas()
    bridge = Bridge(fixture.here.backend, seed=1)
    server, start_ns = read_setup(), bridge.now_ns()
    objects = objects_now(bridge.store)

    def placed(given: list[KubernetesObject]) -> dict[str, str]:
        setup = ForkSetup(
            objects=lambda: given,
            server=server,
            configuration=server.configuration,
            seed=1,
            start_ns=start_ns,
            until_ns=60 * SECOND_NS,
        )
        simulator = simulator_of(setup, server)
        simulator.run(until_ns=start_ns + 60 * SECOND_NS)
        return {pod.metadata.name: pod.spec.node_name for pod in simulator.cluster.store.pods.values()}

    order = sorted(objects.values(), key=lambda item: isinstance(item, Pod))
    found = placed(order)
    assert sorted(found) == ["web-0", "web-1", "web-2"], "the controllers of the fork leave them alone, too"
    assert found["web-2"] != "big"
    without = [each for each in order if type(each).__name__ != "ReplicaSet"]
    assert placed(without)["web-2"] == "big", "the copy of the ReplicaSet is what spreads them"


@pytest.mark.parametrize(
    ("owner", "want"),
    [
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "u", "controller": True}, True, id="ReplicaSet"
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "uid": "u", "controller": True}, True, id="StatefulSet"
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ReplicationController", "uid": "u", "controller": True}, True, id="of core"
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "uid": "u", "controller": True}, False, id="DaemonSet"
        ),
        pytest.param({"apiVersion": "batch/v1", "kind": "Job", "uid": "u", "controller": True}, False, id="Job"),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "uid": "u"}, False, id="an owner that does not control"
        ),
        pytest.param(
            {"apiVersion": "x/v1", "kind": "ReplicaSet", "uid": "u", "controller": True}, False, id="another group"
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}, False, id="a manifest without uids"
        ),
    ],
)
def test_only_owners_used_by_default_spreading_are_copied(owner: dict[str, Any], want: bool) -> None:
    metadata = {"name": "p", "namespace": NS, "uid": "p", "ownerReferences": [{"name": "o", **owner}]}
    source = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    found: Any = translate(BY_PLURAL["pods"], source, Nothing())
    kept = found["metadata"].get("ownerReferences", [])
    assert [each["name"] for each in kept] == (["o"] if want else [])


def test_recordings_contain_only_workload_fields_used_by_default_spreading() -> None:
    container = {"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": "secret"}], "command": ["secret"]}
    template = {
        "metadata": {"labels": {"app": "x"}, "annotations": {"a": "secret"}},
        "spec": {"containers": [container]},
    }
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    kept: Any = redacted(BY_PLURAL["replicasets"], {"metadata": {"name": "x", "namespace": NS}, "spec": spec})
    assert "secret" not in str(kept)
    assert kept["spec"]["selector"] == {"matchLabels": {"app": "x"}}
    assert kept["spec"]["template"]["metadata"]["labels"] == {"app": "x"}
