"""Defaults and generated fields: the client's object, and the API's answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.apiserver.kinds.default_functions import image_tag
from tests.apiserver.client import MERGE, Client, Document

_POD: Document = {"containers": [{"name": "c", "image": "x"}]}
_ONCE: Document = {**_POD, "restartPolicy": "Never"}
_TEMPLATE: Document = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_CLAIM: Document = {
    "metadata": {"name": "d"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def _object(kind: str, spec: Document, **more: object) -> Document:
    return {"kind": kind, "metadata": {"name": "m"}, "spec": spec, **more}


_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


@pytest.mark.parametrize(
    ("path", "document", "where", "want"),
    [
        pytest.param(
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            _object(
                "HorizontalPodAutoscaler",
                {"maxReplicas": 2, "scaleTargetRef": _TARGET, "behavior": {"scaleUp": {"selectPolicy": "Max"}}},
            ),
            "spec.behavior.scaleDown",
            {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
            id="an autoscaler with a behavior gets rules for the direction it leaves out",
        ),
        pytest.param(
            "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
            _object("HorizontalPodAutoscaler", {"maxReplicas": 2, "scaleTargetRef": _TARGET}),
            "spec.targetCPUUtilizationPercentage",
            80,
            id="an autoscaler without metrics aims at 80 % of CPU in v1 too",
        ),
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            {
                "kind": "RoleBinding",
                "metadata": {"name": "m"},
                "roleRef": {"kind": "Role", "name": "r", "apiGroup": ""},
            },
            "roleRef.apiGroup",
            "rbac.authorization.k8s.io",
            id="an empty text of a field that is not a pointer takes the default",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/statefulsets",
            _object(
                "StatefulSet",
                {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE, "volumeClaimTemplates": [_CLAIM]},
            ),
            "spec.volumeClaimTemplates.0.kind",
            "PersistentVolumeClaim",
            id="claim templates are named by kind and version",
        ),
        pytest.param(
            "/apis/storage.k8s.io/v1/csidrivers",
            _object("CSIDriver", {}),
            "spec.preventPodSchedulingIfMissing",
            None,
            id="a field behind a gate that is off has no default",
        ),
        pytest.param(
            "/api/v1/nodes",
            _object("Node", {"podCIDRs": ["10.1.0.0/24"]}),
            "spec.podCIDR",
            "10.1.0.0/24",
            id="the first pod network of a node is copied to podCIDR",
        ),
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            {"kind": "ClusterRole", "metadata": {"name": "m"}, "rules": []},
            "rules",
            None,
            id="an empty list is stored as none",
        ),
        pytest.param(
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            _object("FlowSchema", {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 0}),
            "spec.matchingPrecedence",
            1000,
            id="a precedence of zero is the default",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/daemonsets",
            _object("DaemonSet", {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}),
            "metadata.annotations",
            {"deprecated.daemonset.template.generation": "1"},
            id="a DaemonSet counts its templates in an annotation",
        ),
    ],
)
def test_missing_fields_are_defaulted(path: str, document: Document, where: str, want: object) -> None:
    answer = Client().call("POST", path, document)

    assert answer.status == 201, answer.body
    assert answer.at(where) == want


@pytest.mark.parametrize(
    ("metadata", "labels", "shared"),
    [
        pytest.param({"name": "j"}, {"a": "b"}, True, id="a Job without labels has all of its pods"),
        pytest.param({"name": "j"}, None, True, id="a Job whose template has no labels either gets the generated ones"),
        pytest.param(
            {"name": "j", "labels": {"a": "b"}}, {"a": "b"}, False, id="labels of its own stay, also equal ones"
        ),
    ],
)
def test_jobs_get_generated_labels_and_copy_pod_labels_if_they_have_none(
    metadata: Document, labels: Document | None, *, shared: bool
) -> None:
    template: Document = {"spec": _ONCE, "metadata": {} if labels is None else {"labels": labels}}
    job = {"kind": "Job", "metadata": metadata, "spec": {"template": template}}

    answer = Client().call("POST", "/apis/batch/v1/namespaces/default/jobs", job)

    pod_labels = answer.at("spec.template.metadata.labels")
    assert isinstance(pod_labels, dict)
    assert {"job-name", "batch.kubernetes.io/controller-uid"} <= set(pod_labels)
    assert (answer.at("metadata.labels") == pod_labels) is shared


def test_metrics_and_behavior_of_an_autoscaler_survive_an_update_in_v1() -> None:
    client = Client()
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "5"}},
    }
    spec = {
        "maxReplicas": 2,
        "scaleTargetRef": _TARGET,
        "metrics": [metric],
        "behavior": {"scaleUp": {"selectPolicy": "Min"}},
    }
    v1, v2 = (f"/apis/autoscaling/{each}/namespaces/default/horizontalpodautoscalers" for each in ("v1", "v2"))
    client.call("POST", v2, _object("HorizontalPodAutoscaler", spec))
    before = client.call("GET", f"{v2}/m").at("spec")

    shown = client.call("GET", f"{v1}/m")
    client.call("PUT", f"{v1}/m", shown.document)

    text = '[{"type":"Pods","pods":{"metricName":"q","targetAverageValue":"5"}}]'
    annotations = shown.at("metadata.annotations")
    assert isinstance(annotations, dict)
    assert annotations["autoscaling.alpha.kubernetes.io/metrics"] == text
    assert client.call("GET", f"{v2}/m").at("spec") == before
    assert client.call("GET", f"{v2}/m").at("metadata.annotations") is None


def test_annotations_of_a_v1_autoscaler_are_encoded_as_in_go() -> None:
    client = Client()
    target = {"name": "x", "apiVersion": "v1", "kind": "Service"}
    selector = {
        "matchExpressions": [{"values": ["v"], "operator": "In", "key": "k"}],
        "matchLabels": {"b": "1", "a": "2"},
    }
    metric = {"name": "a<b", "selector": selector}
    source = {"describedObject": target, "metric": metric, "target": {"type": "Value", "value": "1000m"}}
    spec = {"maxReplicas": 2, "scaleTargetRef": _TARGET, "metrics": [{"type": "Object", "object": source}]}
    v1, v2 = (f"/apis/autoscaling/{each}/namespaces/default/horizontalpodautoscalers" for each in ("v1", "v2"))
    client.call("POST", v2, _object("HorizontalPodAutoscaler", spec))

    annotations = client.call("GET", f"{v1}/m").at("metadata.annotations")

    assert annotations == {
        "autoscaling.alpha.kubernetes.io/metrics": (
            '[{"type":"Object","object":{"target":{"kind":"Service","name":"x","apiVersion":"v1"},"metricName":"a\\u003cb",'
            '"targetValue":"1","selector":{"matchLabels":{"a":"2","b":"1"},'
            '"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}}}]'
        )
    }


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        pytest.param(
            "metrics", '[{"type":"Pods","pods":{"metricName":"p","targetAverageValue":"2000m"}}]', "", id="an amount"
        ),
        pytest.param(
            "metrics", '[{"type":"Object","object":{"target":{"kind":"S","name":"x"},"metricName":"m"}}]',
            "spec.metrics[0].object.target.value", id="an absent amount is 0",
        ),
        pytest.param("behavior", '{"ScaleUp":{}}', "spec.behavior.scaleUp.policies", id="empty rules are rules"),
        pytest.param("behavior", '{"ScaleUp":null}', "", id="no rules"),
    ],
)  # fmt: skip
def test_annotations_of_a_v1_autoscaler_are_decoded_as_in_go(name: str, text: str, wrong: str) -> None:
    client = Client()
    autoscaler = _object("HorizontalPodAutoscaler", {"maxReplicas": 2, "scaleTargetRef": _TARGET})
    autoscaler["metadata"] = {"name": "m", "annotations": {f"autoscaling.alpha.kubernetes.io/{name}": text}}
    v1, v2 = (f"/apis/autoscaling/{each}/namespaces/default/horizontalpodautoscalers" for each in ("v1", "v2"))

    answer = client.call("POST", v1, autoscaler)

    assert (answer.status, answer.at("details.causes.0.field")) == ((422, wrong) if wrong else (201, None))
    if "2000m" in text:
        assert client.call("GET", f"{v2}/m").at("spec.metrics.0.pods.target.averageValue") == "2"


def test_a_template_change_increments_the_template_generation_of_a_daemon_set() -> None:
    client = Client()
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    client.call("POST", path, _object("DaemonSet", spec))
    change = {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}}}

    changed = client.call("PATCH", f"{path}/m", change, content_type=MERGE)

    assert changed.at("metadata.annotations") == {"deprecated.daemonset.template.generation": "2"}


def test_flow_schemas_report_whether_their_priority_level_exists() -> None:
    client = Client()
    schemas, levels = (
        f"/apis/flowcontrol.apiserver.k8s.io/v1/{each}" for each in ("flowschemas", "prioritylevelconfigurations")
    )
    made = client.call("POST", schemas, _object("FlowSchema", {"priorityLevelConfiguration": {"name": "m"}}))
    missing = client.call("GET", f"{schemas}/m").at("status.conditions.0.status")

    limited: dict[str, object] = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
    client.call("POST", levels, _object("PriorityLevelConfiguration", limited))
    found = client.call("GET", f"{schemas}/m").at("status.conditions.0.status")
    client.call("DELETE", f"{levels}/m")

    assert (made.at("status"), missing, found) == ({}, "True", "False")
    assert client.call("GET", f"{schemas}/m").at("status.conditions.0.status") == "True"


@pytest.mark.parametrize(
    ("image", "want"),
    [
        pytest.param("nginx", "latest", id="a missing tag means latest"),
        pytest.param("nginx:1.2", "1.2", id="a tag"),
        pytest.param("localhost:5000/a/b:v1", "v1", id="a port is not a tag"),
        pytest.param("nginx@sha256:" + "0" * 64, "", id="a digest needs no tag"),
        pytest.param("-bad-", "", id="an invalid image name"),
        pytest.param("A_B/c d", "", id="an image name with a space"),
        pytest.param("f" * 64, "", id="an identifier is not a name"),
        pytest.param("nginx:", "", id="an empty tag"),
        pytest.param("a/Nginx", "", id="paths are lower case"),
        pytest.param("x" * 300, "", id="a name that is too long"),
    ],
)
def test_image_tag_returns_the_tag_of_a_valid_image_name(image: str, want: str) -> None:
    assert image_tag(image) == want


@pytest.fixture(name="make")
def _make() -> Callable[..., tuple[int, object]]:
    client = Client()

    def make(spec: Document, query: str = "", name: str = "s") -> tuple[int, object]:
        document = {"kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
        answer = client.call("POST", f"/api/v1/namespaces/default/services{query}", document)
        return answer.status, answer.at("spec") if answer.status < 300 else answer.at("details.causes.0.message")

    return make


@pytest.mark.parametrize(
    ("spec", "query", "want"),
    [
        pytest.param({"clusterIP": "1.2.3.4"}, "", "the provided network does not match the current range", id="another network"),
        pytest.param(
            {"clusterIP": "10.96.0.0"}, "", "10.96.0.0: the provided network does not match the current range",
            id="the address of the network",
        ),
        pytest.param({"ipFamilies": ["IPv6"]}, "", '"IPv6": not configured on this cluster', id="a family that does not exist"),
        pytest.param(
            {"ipFamilyPolicy": "RequireDualStack"}, "", "this cluster is not configured for dual-stack services",
            id="two families",
        ),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}, "",
            "provided port is not in the valid range. The range of valid ports is 30000-32767", id="a low node port",
        ),
    ],
)  # fmt: skip
def test_invalid_service_addresses_families_and_ports_are_refused(
    make: Callable[..., tuple[int, object]], spec: Document, query: str, want: str
) -> None:
    status, message = make(spec, query)

    assert status == 422
    assert str(message).endswith(want)


def test_a_dry_run_shows_the_first_address_and_port_of_each_range(make: Callable[..., tuple[int, object]]) -> None:
    ports = [{"port": 80, "name": "a", "nodePort": 30080}, {"port": 81, "name": "b"}]

    status, spec = make({"type": "NodePort", "ports": ports}, "?dryRun=All")

    assert status == 201
    assert isinstance(spec, dict)
    assert spec["clusterIP"] == "10.96.0.0"
    assert [port["nodePort"] for port in spec["ports"]] == [30080, 30081]


def test_an_allocated_cluster_ip_is_refused(make: Callable[..., tuple[int, object]]) -> None:
    make({"clusterIP": "10.96.0.9"})

    status, message = make({"clusterIP": "10.96.0.9"}, name="t")

    assert (status, str(message).endswith("10.96.0.9: provided IP is already allocated")) == (422, True)


def test_an_allocated_node_port_is_refused_and_health_check_ports_are_separate(
    make: Callable[..., tuple[int, object]],
) -> None:
    make({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]})

    taken = make({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}, name="t")
    status, local = make({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, name="u")

    assert taken == (422, "Invalid value: 30080: provided port is already allocated")
    assert status == 201
    assert isinstance(local, dict)
    assert 30000 <= local["healthCheckNodePort"] <= 32767 != local["ports"][0]["nodePort"]


def test_a_service_that_becomes_internal_loses_its_node_ports() -> None:
    client = Client()
    path = "/api/v1/namespaces/default/services"
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    made = client.call("POST", path, {"kind": "Service", "metadata": {"name": "s"}, "spec": spec})

    changed = client.call("PATCH", f"{path}/s", {"spec": {"type": "ClusterIP"}}, content_type=MERGE)

    assert made.at("spec.ports.0.nodePort") is not None
    assert changed.at("spec.ports.0.nodePort") is None
    assert changed.at("spec.externalTrafficPolicy") is None
    assert changed.at("spec.clusterIP") == made.at("spec.clusterIP")


def test_a_v1_autoscaler_status_update_owns_the_current_metrics_annotation() -> None:
    client = Client()
    v1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    spec = {"maxReplicas": 2, "scaleTargetRef": _TARGET}
    autoscaler = client.call("POST", v1, _object("HorizontalPodAutoscaler", spec)).document
    autoscaler["status"] = {"currentReplicas": 1, "desiredReplicas": 1, "currentCPUUtilizationPercentage": 50}

    client.call("PUT", f"{v1}/m/status", autoscaler)

    entries = client.call("GET", f"{v1}/m").at("metadata.managedFields")
    assert isinstance(entries, list)
    (owned,) = (each["fieldsV1"] for each in entries if each.get("subresource") == "status")
    assert "f:autoscaling.alpha.kubernetes.io/current-metrics" in owned["f:metadata"]["f:annotations"]
