"""The workload of a pod on a running server: its topmost controlling owner, in whatever order the owners are added."""

from __future__ import annotations

from tests.http_api.server_fixture import Document, ServerFixture, pod, run

REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
REPLICA_SET: Document = {
    "metadata": {"name": "web-1"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


def owned_by(kind: str, name: str, uid: str) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    return {"metadata": {"ownerReferences": [reference]}}


async def workloads(fixture: ServerFixture) -> list[str]:
    fixture.server.bridge.flush()
    pods = await fixture.service.state.view.pod_columns()
    return [life.workload for life in pods.lives if life is not None]


async def patch(fixture: ServerFixture, path: str, document: Document) -> None:
    await fixture.api("PATCH", path, document, "application/merge-patch+json")


def test_pods_follow_a_replica_set_to_its_new_owner() -> None:
    async def test(fixture: ServerFixture) -> None:
        made = await fixture.api("POST", REPLICA_SETS, REPLICA_SET)
        await fixture.create(pod("p"))
        seen = [await workloads(fixture)]
        await patch(
            fixture, "/api/v1/namespaces/default/pods/p", owned_by("ReplicaSet", "web-1", made["metadata"]["uid"])
        )
        seen.append(await workloads(fixture))
        await patch(fixture, f"{REPLICA_SETS}/web-1", owned_by("Deployment", "web", "1-2-3"))
        seen.append(await workloads(fixture))
        await patch(fixture, f"{REPLICA_SETS}/web-1", {"metadata": {"ownerReferences": None}})
        seen.append(await workloads(fixture))
        assert seen == [[""], ["ReplicaSet default/web-1"], ["Deployment default/web"], ["ReplicaSet default/web-1"]]

    run(test)


def test_pods_that_are_added_before_their_replica_set_belong_to_its_deployment() -> None:
    async def test(fixture: ServerFixture) -> None:
        for name in ("first", "second", "third"):
            made = pod(name)
            made["metadata"].update(owned_by("ReplicaSet", "web-1", "1-2-3")["metadata"])
            await fixture.create(made)
        seen = [await workloads(fixture)]
        # Two pods leave their owner: one is replaced by a pod without an owner, the other is released.
        await fixture.api("DELETE", "/api/v1/namespaces/default/pods/second", {"gracePeriodSeconds": 0})
        await fixture.create(pod("second"))
        await patch(fixture, "/api/v1/namespaces/default/pods/third", {"metadata": {"ownerReferences": None}})
        seen.append(await workloads(fixture))
        owner = {**REPLICA_SET, "metadata": {"name": "web-1", **owned_by("Deployment", "web", "4-5-6")["metadata"]}}
        await fixture.api("POST", REPLICA_SETS, owner)
        seen.append(await workloads(fixture))
        await patch(fixture, "/api/v1/namespaces/default/pods/first", {"metadata": {"labels": {"a": "b"}}})
        seen.append(await workloads(fixture))
        replica_set, deployment = "ReplicaSet default/web-1", "Deployment default/web"
        assert seen == [[replica_set] * 3, [replica_set, "", ""], [deployment, "", ""], [deployment, "", ""]]

    run(test)


def test_deleted_owners_are_forgotten() -> None:
    async def test(fixture: ServerFixture) -> None:
        seen: list[list[str]] = []
        for name, above in (("p", owned_by("Deployment", "web", "4-5-6")["metadata"]), ("q", {})):
            owner = {**REPLICA_SET, "metadata": {"name": "web-1", **above}}
            made = await fixture.api("POST", REPLICA_SETS, owner)
            owned = pod(name)
            owned["metadata"].update(owned_by("ReplicaSet", "web-1", made["metadata"]["uid"])["metadata"])
            await fixture.create(owned)
            seen.append(await workloads(fixture))
            await fixture.api("DELETE", f"{REPLICA_SETS}/web-1", {"propagationPolicy": "Background"})
            # The pod keeps its workload without its owner.
            await patch(fixture, f"/api/v1/namespaces/default/pods/{name}", {"metadata": {"labels": {"a": "b"}}})
            seen.append(await workloads(fixture))
        replica_set, deployment = "ReplicaSet default/web-1", "Deployment default/web"
        assert seen == [[deployment], [deployment], [deployment, replica_set], [deployment, replica_set]]

    run(test)
