"""Replicas that were never created, and why."""

from __future__ import annotations

from bayplan.answers.missing_replicas import missing_replicas, refused_replicas
from bayplan.testing.builders import make_pod
from bayplan.testing.object_builders import make_object
from tests.answers.clusters import cluster_of, node

DB = make_object(
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": "db"}]},
            },
        },
    }
)
QUOTA = make_object(
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
)
FIRST = make_pod("db-0").label(app="db").owner("StatefulSet", "db").obj()


def test_a_stateful_set_creates_its_next_pod_when_the_last_one_is_ready() -> None:
    want = "2 replicas of statefulset/default/db were never created: default/db-0 has to be ready first"
    cluster = cluster_of(node("a"), DB, FIRST)
    assert missing_replicas("statefulset/db", cluster) == want
    assert not refused_replicas(cluster)
    assert not missing_replicas("statefulset/db", cluster, only_if_all=True)


def test_replicas_that_a_quota_refuses_are_listed() -> None:
    (found,) = refused_replicas(cluster_of(node("a"), DB, FIRST, QUOTA))
    assert found.startswith("2 replicas of statefulset/default/db were never created: forbidden: exceeded quota: team")


def test_a_replica_that_a_quota_admits_takes_nothing_from_other_workloads() -> None:
    quota = make_object(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"hard": {"pods": "3"}},
        }
    )
    web = make_object(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
        }
    )
    pod = make_pod("web-0").label(app="web").owner("ReplicaSet", "web").obj()
    cluster = cluster_of(node("a"), DB, FIRST, web, pod, quota)
    assert not refused_replicas(cluster)
    assert missing_replicas("replicaset/web", cluster) == "1 replica of replicaset/default/web was never created"
