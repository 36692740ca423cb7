"""Writes through the API: creates, updates, patches, deletions, admission; what a client sees of them."""

from __future__ import annotations

from typing import cast

import pytest

from tests.apiserver.client import APPLY, JSON_PATCH, MERGE, PODS, STRATEGIC, Client, Document, names, pod

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT: Document = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


@pytest.fixture
def client() -> Client:
    return Client()


def test_a_created_pod_has_defaults_and_is_read_back_unchanged(client: Client) -> None:
    created = client.post(PODS, pod("p"))
    assert created.status == 201
    assert created.at("spec.restartPolicy") == "Always"
    assert created.at("spec.priority") == 0
    assert created.at("status") == {"phase": "Pending", "qosClass": "BestEffort"}
    assert client.get(f"{PODS}/p").body == created.body
    assert client.get(PODS).at("items.0.metadata") == created.at("metadata")


def test_an_update_with_a_stale_resource_version_conflicts_and_one_without_succeeds(client: Client) -> None:
    old = client.post(PODS, pod("p")).document
    changed = client.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "1"}}})
    assert changed.status == 200
    assert client.put(f"{PODS}/p", old).at("reason") == "Conflict"
    metadata = old["metadata"]
    assert isinstance(metadata, dict)
    del metadata["resourceVersion"]
    assert client.put(f"{PODS}/p", old).at("metadata.labels") is None


@pytest.mark.parametrize(("query", "root"), [("", "/registry"), ("?dryRun=All", "")])
def test_an_update_with_another_uid_names_the_key_in_etcd(client: Client, query: str, root: str) -> None:
    created = client.post(PODS, pod("p"))
    other = {**pod("p"), "metadata": {"name": "p", "namespace": "default", "uid": "other"}}
    refused = client.put(f"{PODS}/p{query}", other)
    assert refused.status == 409
    message = str(refused.at("message"))
    assert f"Key: {root}/pods/default/p, ResourceVersion: 0" in message
    assert message.endswith(f"UID in precondition: other, UID in object meta: {created.at('metadata.uid')}")


def test_an_update_without_changes_preserves_the_resource_version(client: Client) -> None:
    first = client.post(DEPLOYMENTS, DEPLOYMENT).document
    again = client.put(f"{DEPLOYMENTS}/d", first)
    assert again.at("metadata.resourceVersion") == first["metadata"]["resourceVersion"]  # type: ignore[index]
    scaled = client.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 3}})
    assert scaled.at("metadata.generation") == 2


def test_server_side_apply_creates_and_prunes_fields(client: Client) -> None:
    path = "/api/v1/namespaces/default/configmaps/m"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
    created = client.patch(f"{path}?fieldManager=one", {**config, "data": {"a": "1", "b": "1"}}, APPLY)
    assert (created.status, created.at("data")) == (201, {"a": "1", "b": "1"})
    same = client.patch(f"{path}?fieldManager=one", {**config, "data": {"a": "1", "b": "1"}}, APPLY)
    assert same.body == created.body
    pruned = client.patch(f"{path}?fieldManager=one", {**config, "data": {"b": "1"}}, APPLY)
    assert pruned.at("data") == {"b": "1"}


@pytest.mark.parametrize(
    ("body", "content_type", "want"),
    [
        pytest.param({"spec": {"containers": [{"name": "c", "image": "new"}]}}, STRATEGIC, "new", id="strategic"),
        pytest.param(
            [{"op": "replace", "path": "/spec/containers/0/image", "value": "new"}], JSON_PATCH, "new", id="JSON"
        ),
    ],
)
def test_patching_an_image_increments_the_generation(
    client: Client, body: object, content_type: str, want: str
) -> None:
    client.post(PODS, pod("p"))
    answer = client.patch(f"{PODS}/p", body, content_type)
    assert (answer.at("spec.containers.0.image"), answer.at("metadata.generation")) == (want, 2)


def test_a_dry_run_returns_the_result_without_storing_it(client: Client) -> None:
    revision = client.store.revision
    assert client.post(f"{PODS}?dryRun=All", pod("p")).status == 201
    assert client.post(PODS, pod("q")).status == 201
    assert client.patch(f"{PODS}/q?dryRun=All", {"metadata": {"labels": {"a": "1"}}}).at("metadata.labels") == {
        "a": "1"
    }
    assert client.call("DELETE", f"{PODS}/q?dryRun=All").status == 200
    assert names(client.get(PODS)) == ["q"]
    assert client.store.revision == revision + 1


def bound(document: Document) -> None:
    document["spec"]["nodeName"] = "n"  # type: ignore[index]


def test_a_deleted_bound_pod_is_terminating_until_deleted_with_zero_grace(client: Client) -> None:
    client.post(PODS, pod("p", bound))
    marked = client.delete(f"{PODS}/p")
    assert marked.at("metadata.deletionGracePeriodSeconds") == 30
    assert marked.at("metadata.generation") == 2
    again = client.delete(f"{PODS}/p")
    assert again.body == marked.body
    client.delete(f"{PODS}/p", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    assert client.get(f"{PODS}/p").status == 404


def test_a_deleted_object_is_removed_with_its_last_finalizer(client: Client) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    document = {"metadata": {"name": "m", "finalizers": ["example.com/a", "example.com/b"]}}
    client.post(path, document)
    assert client.delete(f"{path}/m").at("metadata.deletionTimestamp") is not None
    client.patch(f"{path}/m", {"metadata": {"finalizers": ["example.com/b"]}})
    assert client.get(f"{path}/m").status == 200
    assert client.patch(f"{path}/m", {"metadata": {"finalizers": None}}).status == 200
    assert client.get(f"{path}/m").status == 404


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param({"preconditions": {"uid": "other"}}, 409, id="another uid"),
        pytest.param({"preconditions": {"resourceVersion": "1"}}, 409, id="another version"),
        pytest.param({"propagationPolicy": "Orphan"}, 200, id="a policy that adds a finalizer"),
        pytest.param({"propagationPolicy": "Whatever"}, 422, id="no policy"),
    ],
)
def test_delete_options_are_validated_and_orphan_adds_a_finalizer(client: Client, options: Document, want: int) -> None:
    client.post(DEPLOYMENTS, DEPLOYMENT)
    answer = client.delete(f"{DEPLOYMENTS}/d", {"kind": "DeleteOptions", "apiVersion": "v1", **options})
    assert answer.status == want
    held = client.get(f"{DEPLOYMENTS}/d")
    assert held.at("metadata.finalizers") == (["orphan"] if want == 200 else None)


def test_a_pod_gets_the_priority_of_its_class_and_a_missing_class_is_forbidden(client: Client) -> None:
    def with_class(name: str) -> Document:
        return pod("p", lambda each: each["spec"].update(priorityClassName=name))  # type: ignore[attr-defined]

    assert client.post(PODS, with_class("nope")).at("reason") == "Forbidden"
    created = client.post(PODS, with_class("system-node-critical"))
    assert created.at("spec.priority") == 2_000_001_000


def test_a_terminating_namespace_refuses_pods_and_is_removed_when_finalized(client: Client) -> None:
    client.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    pods = "/api/v1/namespaces/team/pods"
    assert client.post(pods, pod("p")).status == 201
    assert client.delete("/api/v1/namespaces/team").at("status.phase") == "Terminating"
    assert client.post(pods, pod("q")).status == 403
    client.put("/api/v1/namespaces/team/finalize", {"metadata": {"name": "team"}, "spec": {"finalizers": []}})
    assert client.get("/api/v1/namespaces/team").status == 404
    assert client.post(pods, pod("q")).status == 404


def test_a_binding_sets_node_topology_labels_and_condition_and_clears_the_nomination(client: Client) -> None:
    client.post("/api/v1/nodes", {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "x": "y"}}})
    client.post(PODS, pod("p"))
    client.patch(f"{PODS}/p/status", {"status": {"nominatedNodeName": "n"}})
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert client.post(f"{PODS}/p/binding", body).status == 201
    found = client.get(f"{PODS}/p")
    assert found.at("spec.nodeName") == "n"
    assert found.at("status.nominatedNodeName") is None
    assert found.at("metadata.labels") == {"topology.kubernetes.io/zone": "z"}
    assert found.at("status.conditions.0.status") == "True"
    assert client.post(f"{PODS}/p/binding", body).status == 409


def test_the_scale_subresource_reads_and_changes_replicas(client: Client) -> None:
    client.post(DEPLOYMENTS, DEPLOYMENT)
    before = client.get(f"{DEPLOYMENTS}/d/scale")
    assert (before.at("spec.replicas"), before.at("status.selector")) == (1, "a=b")
    assert client.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 4}}).at("spec.replicas") == 4
    assert client.get(f"{DEPLOYMENTS}/d").at("spec.replicas") == 4


def test_an_event_is_readable_through_both_api_groups(client: Client) -> None:
    new = "/apis/events.k8s.io/v1/namespaces/default/events"
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "s",
        "reportingInstance": "s-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "note": "done",
        "type": "Normal",
    }
    assert client.post(new, event).status == 201
    old = client.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=p,reason=Scheduled")
    assert old.at("items.0.message") == "done"
    assert client.get(f"{new}/e").at("regarding.name") == "p"


def test_unknown_fields_return_a_warning_and_are_refused_in_strict_mode(client: Client) -> None:
    body = {**pod("p"), "nope": 1}
    warned = client.post(PODS, body)
    assert ("warning", '299 - "unknown field \\"nope\\""') in warned.headers
    refused = client.post(f"{PODS}?fieldValidation=Strict", {**pod("q"), "nope": 1})
    assert (
        refused.at("message")
        == 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "nope"'
    )


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"ports": [{"port": 1.5}]}, "cannot convert float64 to int32"),
        ({"ports": [{"port": 80, "targetPort": 1.5}]}, "json: cannot unmarshal number 1.5 into Go value of type int32"),
    ],
    ids=["a number", "a number or a string, which has its own decoder"],
)
def test_an_applied_number_with_decimals(spec: Document, want: str) -> None:
    config: Document = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
    answer = Client().patch("/api/v1/namespaces/default/services/s?fieldManager=me", config, APPLY)
    assert answer.status == 500
    assert str(answer.at("message")).endswith(f"to /v1, Kind=Service: {want}")


# --- what only a kubelet can answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        ({}, 204, None),
        ({"nodeName": "n"}, 500, "no preferred addresses found; known addresses: []"),
        ({"nodeName": "missing"}, 404, 'pods "missing" not found'),
    ],
)
def test_pod_logs_are_empty_or_fail_without_a_simulated_kubelet(
    spec: Document, status: int, message: str | None
) -> None:
    client = Client()
    client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    document = pod("p", lambda new: cast("Document", new["spec"]).update(spec))
    assert client.post(PODS, document).status == 201
    answer = client.get(f"{PODS}/p/log")
    assert (answer.status, answer.at("message")) == (status, message)


def test_versions_of_an_object_share_unchanged_labels_fields_and_uid(client: Client) -> None:
    client.post(PODS, {**pod("shared"), "metadata": {"name": "shared", "labels": {"app": "x"}}})
    before = client.store.get("pods", ("default", "shared"))
    client.call("PATCH", f"{PODS}/shared", {"metadata": {"annotations": {"a": "b"}}}, content_type=MERGE)
    after = client.store.get("pods", ("default", "shared"))
    assert before is not None
    assert after is not None
    assert after.revision > before.revision
    assert (after.labels is before.labels, after.fields is before.fields, after.uid is before.uid) == (True, True, True)


def test_deleting_a_collection_at_a_revision_deletes_only_the_objects_of_that_revision(client: Client) -> None:
    first = client.post(PODS, pod("a")).at("metadata.resourceVersion")
    client.post(PODS, pod("b"))
    assert names(client.delete(f"{PODS}?resourceVersion={first}")) == ["a"]
    assert names(client.get(PODS)) == ["b"]


def test_a_service_that_is_no_longer_a_load_balancer_loses_its_ingress(client: Client) -> None:
    services = "/api/v1/namespaces/default/services"
    spec: Document = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    client.post(services, {"metadata": {"name": "s"}, "spec": spec})
    client.patch(f"{services}/s/status", {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}})
    assert client.patch(f"{services}/s", {"metadata": {"labels": {"a": "b"}}}).at("status.loadBalancer") != {}
    assert client.patch(f"{services}/s", {"spec": {"type": "ClusterIP"}}).at("status.loadBalancer") == {}


@pytest.mark.parametrize(
    ("spec", "annotations", "want"),
    [
        pytest.param({}, {}, "first", id="the default, by name of those created at the same time"),
        pytest.param({"ingressClassName": "own"}, {}, "own", id="its own"),
        pytest.param({}, {"kubernetes.io/ingress.class": "old"}, None, id="the older annotation"),
    ],
)
def test_an_ingress_gets_the_default_class(client: Client, spec: Document, annotations: Document, want: object) -> None:
    mark = {"ingressclass.kubernetes.io/is-default-class": "true"}
    for name in ("second", "first"):
        metadata = {"name": name, "annotations": mark}
        client.post(
            "/apis/networking.k8s.io/v1/ingressclasses", {"metadata": metadata, "spec": {"controller": "example.com/c"}}
        )
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "i", "annotations": annotations}, "spec": {"defaultBackend": backend, **spec}}
    answer = client.post("/apis/networking.k8s.io/v1/namespaces/default/ingresses", ingress)
    assert (answer.status, answer.at("spec.ingressClassName")) == (201, want)


def test_the_generation_of_a_csi_driver_counts_its_changes(client: Client) -> None:
    drivers, spec = "/apis/storage.k8s.io/v1/csidrivers", {"tokenRequests": [{"audience": ""}]}
    created = client.post(drivers, {"metadata": {"name": "d.example.com"}, "spec": spec})
    assert created.at("metadata.generation") is None
    assert [name for name, _ in created.headers] == ["warning"]
    changed = client.patch(f"{drivers}/d.example.com", {"spec": {"requiresRepublish": True}})
    assert (changed.at("metadata.generation"), changed.headers) == (1, [])


def test_each_repeated_topology_term_is_reported(client: Client) -> None:
    storage_class: Document = {"metadata": {"name": "s"}, "provisioner": "example.com/p", "allowedTopologies": [{}, {}]}
    answer = client.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    causes = cast("list[Document]", answer.at("details.causes"))
    # Upstream compares each term with two empty terms, and the second term also with the first.
    assert [str(each["field"])[18] for each in causes] == ["0", "0", "1", "1", "1"]


def test_a_refused_apply_still_warns_about_repeated_keys(client: Client) -> None:
    body = b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "name": "p"}, "spec": {"containers": []}}'
    answer = client.call("PATCH", f"{PODS}/p?fieldManager=m", body, content_type=APPLY)
    assert answer.status == 422
    assert answer.headers == [("warning", '299 - "line 1: key \\"name\\" already set in map"')]


def test_conflicts_of_one_level_come_before_those_of_deeper_ones(client: Client) -> None:
    config: Document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    spec: Document = {"containers": [{"name": "c", "image": "a"}], "tolerations": [{"key": "a", "operator": "Exists"}]}
    assert client.patch(f"{PODS}/p?fieldManager=a", {**config, "spec": spec}, APPLY).status == 201
    spec = {"containers": [{"name": "c", "image": "b"}], "tolerations": [{"key": "b", "operator": "Exists"}]}
    refused = client.patch(f"{PODS}/p?fieldManager=b", {**config, "spec": spec}, APPLY)
    fields = [each["field"] for each in cast("list[Document]", refused.at("details.causes"))]
    assert fields == [".spec.tolerations", '.spec.containers[name="c"].image']


def test_unknown_fields_after_a_strategic_patch_are_sorted(client: Client) -> None:
    client.post(PODS, pod("p"))
    answer = client.patch(f"{PODS}/p", {"spec": {"zzz": 1, "aaa": 1}, "nope": 1}, STRATEGIC)
    found = [value for name, value in answer.headers if name == "warning"]
    assert found == [f'299 - "unknown field \\"{name}\\""' for name in ("nope", "spec.aaa", "spec.zzz")]


def test_a_change_of_an_autoscaler_in_v1_takes_fields_from_managers_in_v2(client: Client) -> None:
    path = "namespaces/default/horizontalpodautoscalers"
    pods: Document = {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    spec: Document = {
        "maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "metrics": [{"type": "Pods", "pods": pods}],
    }
    client.post(f"/apis/autoscaling/v2/{path}", {"metadata": {"name": "h"}, "spec": spec})
    client.patch(f"/apis/autoscaling/v1/{path}/h", {"spec": {"targetCPUUtilizationPercentage": 50}})
    found = client.get(f"/apis/autoscaling/v2/{path}/h")
    assert found.at("metadata.annotations") is None
    assert [each["type"] for each in cast("list[Document]", found.at("spec.metrics"))] == ["Pods", "Resource"]
    owned = {
        str(each["apiVersion"]): cast("dict[str, Document]", each["fieldsV1"])["f:spec"].keys()
        for each in cast("list[Document]", found.at("metadata.managedFields"))
    }
    assert owned["autoscaling/v1"] == {"f:targetCPUUtilizationPercentage"}
    assert "f:metrics" not in owned["autoscaling/v2"]


@pytest.mark.parametrize(("query", "want"), [("", None), ("?dryRun=All", "x")])
def test_only_a_dry_run_of_an_update_shows_the_self_link(query: str, want: str | None) -> None:
    client = Client()
    client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    path = f"/api/v1/namespaces/default/configmaps/a{query}"
    assert client.call("PUT", path, {"metadata": {"name": "a", "selfLink": "x"}}).at("metadata.selfLink") == want


def test_a_metadata_change_is_checked_between_the_rules_of_a_runtime_class(client: Client) -> None:
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    client.post(path, {"metadata": {"name": "r"}, "handler": "h"})

    found = client.patch(f"{path}/r", {"handler": "A", "metadata": {"annotations": {"a b": "c"}}})

    causes = cast("list[Document]", found.at("details.causes"))
    assert [each["field"] for each in causes] == [
        *["metadata.annotations"] * 3,
        "handler",
        "metadata.annotations",
        "handler",
    ]


@pytest.mark.parametrize("body", [pytest.param({}, id="any"), pytest.param({"clusterIP": "10.96.0.50"}, id="given")])
def test_a_service_without_a_name_gets_no_address(client: Client, body: Document) -> None:
    found = client.post("/api/v1/namespaces/default/services", {"spec": body} if body else {})

    [cause] = cast("list[Document]", found.at("details.causes"))
    assert cause["field"] == "spec.clusterIPs"
    assert str(cause["message"]).endswith("is invalid: spec.parentRef.name: Required value")


@pytest.mark.parametrize(("path", "want"), [("pods/p/binding", 409), ("bindings", 201)])
def test_the_older_resource_of_bindings_ignores_their_uid(path: str, want: int) -> None:
    client = Client()
    assert client.post(PODS, pod("p")).status == 201
    binding: Document = {"metadata": {"name": "p", "uid": "other"}, "target": {"name": "n"}}
    assert client.post(f"/api/v1/namespaces/default/{path}", binding).status == want


def test_errors_quote_names_as_go_does() -> None:
    client, quoted = Client(), r'"a\"é\\b"'
    new: dict[str, object] = {"metadata": {"name": 'a"é\\b'}}
    invalid = client.post("/api/v1/namespaces/default/configmaps", new)
    assert str(invalid.at("message")).startswith(f"ConfigMap {quoted} is invalid: ")
    client.post("/api/v1/namespaces", {"metadata": {"name": "going"}})
    client.post("/api/v1/namespaces/going/configmaps", {"metadata": {"name": "a", "finalizers": ["a.b/c"]}})
    client.delete("/api/v1/namespaces/going")
    refused = client.post("/api/v1/namespaces/going/configmaps", new)
    assert str(refused.at("message")).startswith(f"configmaps {quoted} is forbidden: ")
