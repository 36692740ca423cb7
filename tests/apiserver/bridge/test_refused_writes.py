"""Controllers whose writes a policy refuses for one object: the others are processed, and the refused write is retried."""

from __future__ import annotations

from typing import cast

import pytest

from bayplan.base.plain_data import part
from bayplan.controllers.daemon_set import DaemonSetController
from bayplan.controllers.node_lifecycle import has_ready_condition
from bayplan.controllers.writer import AwaitsAnswers
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet
from tests.apiserver.bridge.bridge_fixture import API, APPS, BATCH, BridgeFixture, job, workload
from tests.apiserver.client import Document

POLICIES = "/apis/admissionregistration.k8s.io/v1"
PODS = f"{API}/namespaces/default/pods"


def refuse(fixture: BridgeFixture, operation: str, expression: str, resource: str = "pods", name: str = "p") -> None:
    """Refuse an operation on objects for which a CEL expression is false; the policy has the name `name`."""
    rule: Document = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": [operation], "resources": [resource]}
    spec: Document = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    fixture.post(f"{POLICIES}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
    binding: Document = {"policyName": name, "validationActions": ["Deny"]}
    fixture.post(f"{POLICIES}/validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": binding})
    fixture.run()


def allow(fixture: BridgeFixture) -> None:
    """Remove the policy."""
    fixture.delete(f"{POLICIES}/validatingadmissionpolicybindings/p")
    fixture.run(30)


def test_a_job_counts_each_pod_once_while_the_finalizer_of_another_cannot_be_removed() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("calc", "10s", {"parallelism": 3, "completions": 3}))
    fixture.run(5)
    pods = fixture.names("pods")
    refuse(fixture, "UPDATE", f"object.metadata.name != '{pods[1]}'")
    fixture.run(60)
    assert [each.metadata.finalizers != () for each in fixture.bridge.store.pods.values()].count(True) == 1
    assert list(fixture.bridge.failures()) == ["Job default/calc"]
    allow(fixture)
    assert fixture.names("pods") == pods
    assert fixture.get(f"{BATCH}/jobs/calc").at("status.succeeded") == 3
    assert fixture.bridge.failures() == {}


def test_pods_of_a_deleted_node_are_deleted_although_one_of_them_cannot_be() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 3}))
    fixture.run()
    pods = fixture.names("pods")
    refuse(fixture, "DELETE", f"oldObject.metadata.name != '{pods[0]}'")
    fixture.delete(f"{API}/nodes/n0")
    fixture.run(100)
    assert set(pods) & set(fixture.names("pods")) == {pods[0]}
    allow(fixture)
    assert set(pods) & set(fixture.names("pods")) == set()


def test_pods_on_a_node_that_is_not_ready_are_evicted_although_one_of_them_cannot_be() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 3}))
    fixture.run()
    pods = fixture.names("pods")
    refuse(fixture, "DELETE", f"oldObject.metadata.name != '{pods[0]}'")
    conditions: Document = {"conditions": [{"type": "Ready", "status": "False"}]}
    fixture.patch(f"{API}/nodes/n0/status", {"status": conditions})
    fixture.run(350, schedule=False)
    assert set(pods) & set(fixture.names("pods")) == {pods[0]}
    allow(fixture)
    fixture.run(60, schedule=False)
    assert set(pods) & set(fixture.names("pods")) == set()


def test_claims_are_bound_although_the_volume_of_another_cannot_be_created() -> None:
    fixture = BridgeFixture(nodes=1)
    claims = f"{API}/namespaces/default/persistentvolumeclaims"
    for name in ("big", "small"):
        size: Document = {"requests": {"storage": "9Ti" if name == "big" else "1Gi"}}
        spec: Document = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": size}
        fixture.post(claims, {"metadata": {"name": name}, "spec": spec})
    fixture.run()
    refuse(fixture, "CREATE", "quantity(object.spec.capacity.storage).isLessThan(quantity('1Ti'))", "persistentvolumes")
    storage_class: Document = {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"}
    fixture.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    fixture.run(60)
    assert [fixture.get(f"{claims}/{name}").at("status.phase") for name in ("big", "small")] == ["Pending", "Bound"]
    allow(fixture)
    assert fixture.get(f"{claims}/big").at("status.phase") == "Bound"


def test_the_volume_of_a_deleted_claim_is_deleted_once_that_is_allowed() -> None:
    fixture = BridgeFixture(nodes=1)
    claims, volumes = f"{API}/namespaces/default/persistentvolumeclaims", f"{API}/persistentvolumes"
    storage_class: Document = {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"}
    fixture.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    size: Document = {"requests": {"storage": "1Gi"}}
    spec: Document = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": size}
    fixture.post(claims, {"metadata": {"name": "c"}, "spec": spec})
    fixture.run()
    [volume] = fixture.names("persistentvolumes", "")
    refuse(fixture, "DELETE", "false", "persistentvolumes")
    fixture.delete(f"{claims}/c")
    fixture.run(60)
    assert fixture.get(f"{volumes}/{volume}").status == 200
    allow(fixture)
    assert fixture.get(f"{volumes}/{volume}").status == 404


def test_the_kubelet_starts_and_ends_a_pod_once_that_is_allowed() -> None:
    fixture = BridgeFixture(nodes=1)
    refuse(fixture, "UPDATE", "object.metadata.name != 'first'", "pods/status")
    for name in ("first", "second"):
        pod: Document = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "app:1"}]}
        annotations: Document = {"bayplan.io/run-time": "20s"}
        fixture.post(PODS, {"metadata": {"name": name, "annotations": annotations}, "spec": pod})
    fixture.run(45)
    assert [fixture.get(f"{PODS}/{name}").at("status.phase") for name in ("first", "second")] == [
        "Pending",
        "Succeeded",
    ]
    assert list(fixture.bridge.failures()) == ["Pod default/first"]
    fixture.delete(f"{POLICIES}/validatingadmissionpolicybindings/p")
    fixture.run(15)
    started = [event for event in fixture.documents("events") if event["reason"] == "Started"]
    assert [event.get("count") for event in started] == [1, 1]
    assert fixture.get(f"{PODS}/first").at("status.phase") == "Running"
    assert fixture.bridge.failures() == {}
    fixture.run(20)
    assert fixture.get(f"{PODS}/first").at("status.phase") == "Succeeded"


def test_the_kubelet_completes_a_node_once_that_is_allowed() -> None:
    fixture = BridgeFixture()
    refuse(fixture, "UPDATE", "false", "nodes/status")
    fixture.add_node("n0")
    fixture.run(30)
    assert not has_ready_condition(fixture.bridge.store.nodes["n0"])
    assert list(fixture.bridge.failures()) == ["Node n0"]
    allow(fixture)
    assert has_ready_condition(fixture.bridge.store.nodes["n0"])
    assert fixture.bridge.failures() == {}


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependents_are_deleted_although_some_cannot_be_and_those_once_that_is_allowed(policy: str) -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 50}))
    fixture.run()
    kept = fixture.names("pods")[:20]
    names = ", ".join(f"'{name}'" for name in kept)
    refuse(fixture, "DELETE", f"!(oldObject.metadata.name in [{names}])")
    fixture.delete(f"{APPS}/replicasets/web", {"propagationPolicy": policy})
    fixture.run(60)
    assert (fixture.names("pods"), fixture.names("apps/replicasets")) == (kept, ["web"] * (policy == "Foreground"))
    allow(fixture)
    fixture.run(60)
    assert (fixture.names("pods"), fixture.names("apps/replicasets")) == ([], [])


@pytest.mark.parametrize("policy", ["Orphan", "Foreground"])
def test_an_owner_is_deleted_once_its_finalizer_can_be_removed(policy: str) -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 2}))
    fixture.run()
    refuse(fixture, "UPDATE", "request.userInfo.username == 'nobody'", "replicasets")
    fixture.delete(f"{APPS}/replicasets/web", {"propagationPolicy": policy})
    fixture.run(60)
    assert fixture.names("apps/replicasets") == ["web"]
    allow(fixture)
    assert fixture.names("apps/replicasets") == []
    assert len(fixture.names("pods")) == (2 if policy == "Orphan" else 0)


def test_a_cron_job_starts_jobs_on_time_and_deletes_others_although_one_cannot_be_deleted() -> None:
    fixture = BridgeFixture(nodes=1)
    made = job("ignored", "5s")
    spec: Document = {"schedule": "* * * * *", "successfulJobsHistoryLimit": 1, "jobTemplate": {"spec": made["spec"]}}
    fixture.post(f"{BATCH}/cronjobs", {"metadata": {"name": "tick"}, "spec": spec})
    fixture.run(70)
    [first] = fixture.names("batch/jobs")
    refuse(fixture, "DELETE", f"oldObject.metadata.name != '{first}'", "jobs")
    fixture.run(300)
    jobs = [fixture.get(f"{BATCH}/jobs/{name}") for name in fixture.names("batch/jobs")]
    assert (len(jobs), jobs[0].at("metadata.name")) == (2, first)
    times = [str(each.at("metadata.creationTimestamp")) for each in jobs]
    assert all(time.endswith(":00Z") for time in times)
    allow(fixture)
    fixture.run(60)
    assert first not in fixture.names("batch/jobs")


def test_a_cron_job_deletes_old_jobs_although_a_new_one_is_refused() -> None:
    fixture = BridgeFixture(nodes=1)
    made = job("ignored", "5s")
    spec: Document = {"schedule": "* * * * *", "successfulJobsHistoryLimit": 3, "jobTemplate": {"spec": made["spec"]}}
    fixture.post(f"{BATCH}/cronjobs", {"metadata": {"name": "tick"}, "spec": spec})
    fixture.run(190)
    assert len(fixture.names("batch/jobs")) == 3
    refuse(fixture, "CREATE", "false", "jobs")
    fixture.run(70)
    fixture.patch(f"{BATCH}/cronjobs/tick", {"spec": {"successfulJobsHistoryLimit": 1}})
    fixture.run(120)
    assert len(fixture.names("batch/jobs")) == 1
    assert list(fixture.bridge.failures()) == ["CronJob default/tick"]
    allow(fixture)
    fixture.run(300)
    assert fixture.bridge.failures() == {}


@pytest.mark.parametrize("kind", ["ReplicaSet", "Deployment"])
def test_orphans_are_adopted_although_one_cannot_be(kind: str) -> None:
    fixture = BridgeFixture(nodes=1)
    path = f"{APPS}/{kind.lower()}s"
    fixture.post(path, workload(kind, "web", {"replicas": 3}))
    fixture.run(30)
    if kind == "Deployment":
        for version in ("2", "3"):
            labels = {"template": {"metadata": {"labels": {"app": "x", "version": version}}}}
            fixture.patch(f"{path}/web", {"spec": labels})
            fixture.run(30)
    table = "pods" if kind == "ReplicaSet" else "apps/replicasets"
    fixture.delete(f"{path}/web", {"propagationPolicy": "Orphan"})
    fixture.run()
    names = fixture.names(table)
    refuse(fixture, "UPDATE", f"object.metadata.name != '{names[0]}'", table.rpartition("/")[2])
    fixture.post(path, workload(kind, "web", {"replicas": 3}))
    fixture.run(30)
    metadata = [part(each, "metadata") for each in fixture.documents(table)]
    owned = [each["name"] for each in metadata if "ownerReferences" in each]
    assert (len(names), owned, fixture.names(table)) == (3, names[1:], names)


def test_a_suspended_job_waits_between_attempts_to_delete_more_pods_than_one_turn_deletes() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("calc", "", {"parallelism": 40, "completions": 40}))
    fixture.run(5)
    refuse(fixture, "UPDATE", "!object.metadata.name.startsWith('calc')")
    fixture.patch(f"{BATCH}/jobs/calc", {"spec": {"suspend": True}})
    fixture.run(5)
    assert len(fixture.names("pods")) == 40
    allow(fixture)
    assert fixture.names("pods") == []


def test_a_job_past_its_deadline_deletes_pods_although_one_cannot_be_deleted() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("calc", "", {"parallelism": 3, "completions": 3, "activeDeadlineSeconds": 20}))
    fixture.run(5)
    pods = fixture.names("pods")
    refuse(fixture, "DELETE", f"oldObject.metadata.name != '{pods[0]}'")
    fixture.run(60)
    status = fixture.get(f"{BATCH}/jobs/calc")
    assert (status.at("status.active"), status.at("status.failed")) == (1, 2)
    assert status.at("status.conditions.0.type") == "FailureTarget"
    allow(fixture)
    assert fixture.get(f"{BATCH}/jobs/calc").at("status.failed") == 3


def test_a_job_counts_its_pods_once_the_status_can_be_written() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("calc", "10s", {"parallelism": 3, "completions": 3}))
    fixture.run(5)
    refuse(fixture, "UPDATE", "false", "jobs/status")
    fixture.run(60)
    assert list(fixture.bridge.failures()) == ["Job default/calc"]
    allow(fixture)
    assert fixture.get(f"{BATCH}/jobs/calc").at("status.succeeded") == 3


@pytest.mark.parametrize("policy", ["Failed", "TerminatingOrFailed"])
def test_a_failed_job_counts_all_deleted_pods_although_the_finalizer_of_one_cannot_be_removed(policy: str) -> None:
    fixture = BridgeFixture(nodes=1)
    spec: Document = {"parallelism": 3, "completions": 3, "activeDeadlineSeconds": 20, "podReplacementPolicy": policy}
    fixture.post(f"{BATCH}/jobs", job("calc", "", spec))
    fixture.run(5)
    pods = fixture.names("pods")
    refuse(fixture, "UPDATE", f"object.metadata.name != '{pods[0]}' || has(object.metadata.finalizers)")
    fixture.run(100)
    allow(fixture)
    fixture.run(60)
    assert fixture.get(f"{BATCH}/jobs/calc").at("status.failed") == 3


def test_pods_of_a_deleted_job_end_although_the_finalizer_of_one_cannot_be_removed() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{BATCH}/jobs", job("calc", "", {"parallelism": 3, "completions": 3}))
    fixture.run(5)
    pods = fixture.names("pods")
    refuse(fixture, "UPDATE", f"object.metadata.name != '{pods[0]}' || has(object.metadata.finalizers)")
    fixture.delete(f"{BATCH}/jobs/calc", {"propagationPolicy": "Background"})
    fixture.run(100)
    assert fixture.names("pods") == pods[:1]
    allow(fixture)
    assert fixture.names("pods") == []
    assert fixture.bridge.failures() == {}


@pytest.mark.parametrize("is_pod", [True, False])
def test_a_namespace_is_emptied_although_some_objects_cannot_be_deleted(is_pod: bool) -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{API}/namespaces", {"metadata": {"name": "a"}})
    names = [f"x{number:02}" for number in range(40)]
    spec: Document = {"containers": [{"name": "c", "image": "app:1"}]}
    for name in names:
        path, fields = ("pods", {"spec": spec}) if is_pod else ("configmaps", {})
        fixture.post(f"{API}/namespaces/a/{path}", {"metadata": {"name": name}, **fields})
    fixture.run(5)
    refuse(fixture, "DELETE", "!(oldObject.metadata.name < 'x20')", path)
    fixture.delete(f"{API}/namespaces/a")
    fixture.run(120)
    assert [name for name in fixture.names(path, "a") if name in names] == names[:20]
    assert list(fixture.bridge.failures()) == ["Namespace a"]
    conditions = cast("list[Document]", fixture.get(f"{API}/namespaces/a").at("status.conditions"))
    (failure,) = [each for each in conditions if each["type"] == "NamespaceDeletionContentFailure"]
    assert (failure["status"], failure["reason"]) == ("True", "ContentDeletionFailed")
    text = f'Failed to delete all resource types, 1 remaining: {path} "'
    assert str(failure["message"]).startswith(text)
    assert "is forbidden: ValidatingAdmissionPolicy" in str(failure["message"])
    # The refused pods do not keep other objects.
    assert fixture.names("serviceaccounts", "a") == []
    allow(fixture)
    fixture.run(60)
    assert fixture.get(f"{API}/namespaces/a").status == 404
    assert fixture.bridge.failures() == {}


def test_a_namespace_reports_only_deletions_that_are_still_refused() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{API}/namespaces", {"metadata": {"name": "a"}})
    pod: Document = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "app:1"}]}}
    fixture.post(f"{API}/namespaces/a/pods", pod)
    fixture.post(f"{API}/namespaces/a/secrets", {"metadata": {"name": "x"}})
    refuse(fixture, "DELETE", "false")
    refuse(fixture, "DELETE", "false", "secrets", name="q")
    fixture.delete(f"{API}/namespaces/a")
    fixture.run(60)
    assert (fixture.names("pods", "a"), fixture.names("secrets", "a")) == (["x"], ["x"])
    for refused in (2, 1):
        conditions = cast("list[Document]", fixture.get(f"{API}/namespaces/a").at("status.conditions"))
        (failure,) = [each for each in conditions if each["type"] == "NamespaceDeletionContentFailure"]
        assert str(failure["message"]).startswith(f"Failed to delete all resource types, {refused} remaining: ")
        allow(fixture)
        fixture.run(300)
    assert (fixture.names("pods", "a"), fixture.names("secrets", "a")) == ([], ["x"])


def test_a_replica_set_deletes_pods_although_more_than_one_turn_deletes_cannot_be() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 40}))
    fixture.run()
    kept = fixture.names("pods")[:20]
    names = ", ".join(f"'{name}'" for name in kept)
    refuse(fixture, "DELETE", f"!(oldObject.metadata.name in [{names}])")
    fixture.patch(f"{APPS}/replicasets/web", {"spec": {"replicas": 0}})
    fixture.run(60)
    assert fixture.names("pods") == kept
    assert fixture.get(f"{APPS}/replicasets/web").at("status.replicas") == 20


def test_a_released_pod_that_cannot_be_adopted_is_not_replaced() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 2}))
    fixture.run()
    pods = fixture.names("pods")
    refuse(fixture, "UPDATE", f"object.metadata.name != '{pods[0]}' || !has(object.metadata.ownerReferences)")
    fixture.patch(f"{PODS}/{pods[0]}", {"metadata": {"ownerReferences": None}})
    fixture.run(60)
    assert fixture.names("pods") == pods
    assert sorted(fixture.bridge.failures()) == [f"Pod default/{pods[0]}", "ReplicaSet default/web"]
    allow(fixture)
    assert fixture.names("pods") == pods
    assert fixture.get(f"{PODS}/{pods[0]}").at("metadata.ownerReferences.0.name") == "web"
    assert fixture.bridge.failures() == {}


def test_a_daemon_set_creates_the_pods_of_other_nodes_although_one_is_refused() -> None:
    fixture = BridgeFixture(nodes=5)
    terms = "object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    refuse(fixture, "CREATE", f"!{terms}.exists(t, t.matchFields.exists(f, 'n1' in f.values))")
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent"))
    fixture.run(60)
    assert sorted(each.spec.node_name for each in fixture.bridge.store.pods.values()) == ["n0", "n2", "n3", "n4"]
    assert list(fixture.bridge.failures()) == ["DaemonSet default/agent"]
    allow(fixture)
    assert len(fixture.names("pods")) == 5


@pytest.mark.parametrize("maximum", ["maxSurge", "maxUnavailable"])
def test_the_pods_of_other_nodes_are_updated_although_one_is_refused(maximum: str) -> None:
    fixture = BridgeFixture(nodes=4)
    other = {"maxSurge": "maxUnavailable", "maxUnavailable": "maxSurge"}[maximum]
    strategy: Document = {"type": "RollingUpdate", "rollingUpdate": {maximum: 1, other: 0}}
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent", {"updateStrategy": strategy}))
    fixture.run(60)
    if maximum == "maxSurge":
        terms = "object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        refuse(fixture, "CREATE", f"!{terms}.exists(t, t.matchFields.exists(f, 'n0' in f.values))")
    else:
        refuse(fixture, "DELETE", "oldObject.spec.nodeName != 'n0'")
    before = {each.spec.node_name: each.metadata.name for each in fixture.bridge.store.pods.values()}
    fixture.patch(f"{APPS}/daemonsets/agent", {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
    fixture.run(300)
    after = {each.spec.node_name: each.metadata.name for each in fixture.bridge.store.pods.values()}
    assert [name for name in sorted(after) if after[name] == before[name]] == ["n0"]
    assert list(fixture.bridge.failures()) == ["DaemonSet default/agent"]
    allow(fixture)
    fixture.run(60)
    assert before["n0"] not in fixture.names("pods")
    assert (len(fixture.names("pods")), fixture.bridge.failures()) == (4, {})


def test_an_update_of_a_daemon_set_waits_for_the_webhooks_of_the_same_node(monkeypatch: pytest.MonkeyPatch) -> None:
    fixture = BridgeFixture(nodes=4)
    strategy: Document = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent", {"updateStrategy": strategy}))
    fixture.run(60)
    asked: list[str] = []
    delete_pod = DaemonSetController.delete_pod

    def wait_once(self: DaemonSetController, owner: DaemonSet, pod: Pod, now_ns: int) -> None:
        if pod.spec.node_name not in asked[-1:]:
            asked.append(pod.spec.node_name)
            raise AwaitsAnswers("pod", "waits for webhooks")
        delete_pod(self, owner, pod, now_ns)

    monkeypatch.setattr(DaemonSetController, "delete_pod", wait_once)
    fixture.patch(f"{APPS}/daemonsets/agent", {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
    fixture.run(60)
    assert sorted(asked) == ["n0", "n1", "n2", "n3"]


def test_a_daemon_set_creates_pods_although_another_cannot_be_deleted() -> None:
    fixture = BridgeFixture(nodes=2)
    for name in ("n0", "n1"):
        fixture.patch(f"{API}/nodes/{name}", {"metadata": {"labels": {"name": name}}})
    fixture.post(f"{APPS}/daemonsets", workload("DaemonSet", "agent"))
    for name in ("n0", "n1"):
        selector: Document = {"template": {"spec": {"nodeSelector": {"name": name}}}}
        fixture.patch(f"{APPS}/daemonsets/agent", {"spec": selector})
        fixture.run(60)
        if name == "n0":
            assert [each.spec.node_name for each in fixture.bridge.store.pods.values()] == ["n0"]
            refuse(fixture, "DELETE", "false")
    assert sorted(each.spec.node_name for each in fixture.bridge.store.pods.values()) == ["n0", "n1"]


def test_the_run_time_of_a_pod_begins_when_it_starts() -> None:
    fixture = BridgeFixture(nodes=1)
    refuse(fixture, "UPDATE", "object.metadata.name != 'first'", "pods/status")
    pod: Document = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "app:1"}]}
    annotations: Document = {"bayplan.io/run-time": "60s", "bayplan.io/runs-with": "group=2"}
    metadata: Document = {"labels": {"group": "a"}, "annotations": annotations}
    for name in ("first", "second"):
        fixture.post(PODS, {"metadata": {**metadata, "name": name}, "spec": pod})
    fixture.run(45)
    fixture.delete(f"{POLICIES}/validatingadmissionpolicybindings/p")
    for seconds, phase in ((15, "Running"), (40, "Running"), (20, "Succeeded")):
        fixture.run(seconds)
        assert [fixture.get(f"{PODS}/{name}").at("status.phase") for name in ("first", "second")] == [phase] * 2


def test_refused_writes_of_a_node_do_not_multiply(caplog: pytest.LogCaptureFixture) -> None:
    fixture = BridgeFixture()
    refuse(fixture, "UPDATE", "false", "nodes/status")
    capacity: Document = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    ready: Document = {"type": "Ready", "status": "True"}
    status: Document = {"capacity": capacity, "conditions": [ready]}
    fixture.post(f"{API}/nodes", {"metadata": {"name": "n0"}, "spec": {}, "status": status})
    fixture.run(1)
    for number in range(10):
        spec: Document = {"containers": [{"name": "c", "image": "app:1"}]}
        fixture.post(PODS, {"metadata": {"name": f"p{number}"}, "spec": spec})
    fixture.run(5)
    caplog.clear()
    fixture.run(100)
    assert sum("Node n0" in each.getMessage() for each in caplog.records) == 10


def test_a_refused_pod_is_reported_as_often_as_upstream_tries_it() -> None:
    fixture = BridgeFixture(nodes=1)
    fixture.post(
        f"{API}/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}}
    )
    fixture.run()
    fixture.post(f"{APPS}/replicasets", workload("ReplicaSet", "web", {"replicas": 1}))
    # After 5 ms, 10 ms and so on up to 640 ms, and once at the start.
    fixture.run(1.5)
    counts = [each["count"] for each in fixture.documents("events") if each["reason"] == "FailedCreate"]
    assert counts == [1] * 9
    fixture.run(10)
    counts = [each["count"] for each in fixture.documents("events") if each["reason"] == "FailedCreate"]
    assert counts == [*[1] * 9, 3]
