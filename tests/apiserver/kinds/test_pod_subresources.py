"""Resizing pods, and adding ephemeral containers to them: what these endpoints change, and what they refuse."""

from __future__ import annotations

from typing import cast

import pytest

from tests.apiserver.client import PODS, STRATEGIC, Answer, Client, Document, pod

SIDECAR: Document = {"name": "s", "image": "i", "restartPolicy": "Always"}


def burstable(document: Document) -> None:
    spec = cast("dict[str, list[Document]]", document["spec"])
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec["initContainers"] = [{"name": "i", "image": "i"}, SIDECAR]


@pytest.fixture
def client() -> Client:
    client = Client()
    assert client.post(PODS, pod("p", burstable)).status == 201
    return client


def resize(client: Client, resources: Document, **more: object) -> Answer:
    container: Document = {"name": "c", "resources": resources, **more}
    return client.patch(f"{PODS}/p/resize", {"spec": {"containers": [container]}}, STRATEGIC)


def test_a_resize_changes_only_resources(client: Client) -> None:
    answer = resize(client, {"requests": {"cpu": "2500m"}}, image="other")
    assert answer.status == 200
    assert answer.at("spec.containers.0.resources.requests") == {"cpu": "2500m", "memory": "1Gi"}
    assert answer.at("spec.containers.0.image") == "pause:3.10"
    assert answer.at("metadata.generation") == 2
    assert client.get(f"{PODS}/p/resize").at("spec") == answer.at("spec")


def test_init_containers_and_sidecars_can_be_resized(client: Client) -> None:
    resources: Document = {"requests": {"cpu": "1"}}
    change: Document = {"spec": {"initContainers": [{"name": name, "resources": resources} for name in "is"]}}
    answer = client.patch(f"{PODS}/p/resize", change, STRATEGIC)
    assert [answer.at(f"spec.initContainers.{index}.resources") for index in range(2)] == [resources] * 2


@pytest.mark.parametrize(
    ("containers", "why"),
    [
        pytest.param(
            [{"name": "c", "resources": {"requests": {"cpu": None}}}],
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            id="a removed request",
        ),
        pytest.param(
            [{"name": "c", "resources": {"requests": {"ephemeral-storage": "1"}}}],
            "spec: Forbidden: only cpu and memory resources are mutable",
            id="another resource",
        ),
        pytest.param(
            [{"name": "d", "image": "i"}],
            "spec.containers: Forbidden: containers may not be added or removed on resize",
            id="a new container",
        ),
    ],
)
def test_invalid_resizes_are_refused(client: Client, containers: list[Document], why: str) -> None:
    answer = client.patch(f"{PODS}/p/resize", {"spec": {"containers": containers}}, STRATEGIC)
    assert (answer.status, answer.at("message")) == (422, f'Pod "p" is invalid: {why}')


def test_a_resize_that_changes_the_qos_class_is_refused() -> None:
    client = Client()
    requests: Document = {"cpu": "1", "memory": "1Gi"}
    containers: Document = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    assert client.post(PODS, {**pod("p"), "spec": containers}).status == 201
    answer = resize(client, {"requests": requests, "limits": requests})
    why = 'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing'
    assert (answer.status, answer.at("message")) == (422, f'Pod "p" is invalid: {why}')


ONLY_SIZES = "spec: Forbidden: only cpu and memory resources are mutable"


def test_changing_the_resize_policy_is_refused(client: Client) -> None:
    policy: Document = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
    answer = resize(client, {"requests": {"cpu": "2"}}, resizePolicy=[policy])
    assert answer.at("message") == f'Pod "p" is invalid: {ONLY_SIZES}'


def test_resizing_a_container_with_claims_is_refused() -> None:
    client = Client()
    resources: Document = {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
    claims: list[Document] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    spec: Document = {"containers": [{"name": "c", "image": "i", "resources": resources}], "resourceClaims": claims}
    assert client.post(PODS, {**pod("p"), "spec": spec}).status == 201
    for requests, more in (({"cpu": "2"}, {}), ({}, {"image": "other"})):
        answer = resize(client, {"requests": requests}, **more)
        assert answer.at("message") == f'Pod "p" is invalid: {ONLY_SIZES}'


def test_resizing_extended_resources_is_refused() -> None:
    client = Client()
    amounts: Document = {"cpu": "1", "example.com/gpu": "1"}
    spec: Document = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}]
    }
    assert client.post(PODS, {**pod("p"), "spec": spec}).status == 201
    changed: Document = {"example.com/gpu": "2"}
    answer = resize(client, {"requests": changed, "limits": changed})
    assert answer.at("message") == f'Pod "p" is invalid: {ONLY_SIZES}'
    assert resize(client, {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}).status == 200


def resized_pod(resources: object) -> Answer:
    """Create a pod with resources of its own, resize it, and return the answer to the resize."""
    client = Client()
    own: Document = {"requests": {"cpu": "4", "memory": "1Gi"}}
    spec: Document = {"containers": [{"name": "c", "image": "i"}], "resources": own}
    assert client.post(PODS, {**pod("p"), "spec": spec}).status == 201
    return client.patch(f"{PODS}/p/resize", {"spec": {"resources": resources}}, STRATEGIC)


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        pytest.param(None, "spec.resources: Forbidden: pod-level resources cannot be removed", id="nothing"),
        pytest.param(
            {"requests": {"cpu": None}},
            "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed",
            id="without CPU",
        ),
        pytest.param(
            {"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}},
            "spec: Forbidden: only cpu and memory resources are mutable at pod-level",
            id="huge pages",
        ),
    ],
)
def test_invalid_pod_level_resizes_are_refused(resources: object, why: str) -> None:
    answer = resized_pod(resources)
    assert answer.status == 422
    assert why in str(answer.at("message"))


def test_a_pod_level_resize_changes_the_requests_of_the_pod() -> None:
    answer = resized_pod({"requests": {"cpu": "5"}})
    assert answer.status == 200
    assert answer.at("spec.resources.requests") == {"cpu": "5", "memory": "1Gi"}


def test_resizing_a_static_pod_is_refused(client: Client) -> None:
    annotations: Document = {"kubernetes.io/config.mirror": "x"}
    spec: Document = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    assert (
        client.post(PODS, {**pod("s"), "metadata": {"name": "s", "annotations": annotations}, "spec": spec}).status
        == 201
    )
    answer = client.patch(f"{PODS}/s/resize", {"metadata": {"labels": {"a": "b"}}})
    assert answer.at("message") == 'Pod "s" is invalid: []: Forbidden: static pods cannot be resized'


def test_a_resize_is_refused_if_the_node_does_not_support_it(client: Client) -> None:
    running: Document = {
        "name": "c",
        "state": {"running": {}},
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
    }
    assert client.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [running]}}).status == 200
    answer = resize(client, {"requests": {"cpu": "2"}})
    assert answer.at("message") == 'Pod "p" is invalid: spec: Forbidden: Pod running on node without support for resize'


def test_ephemeral_containers_can_be_added_but_not_changed_or_removed(client: Client) -> None:
    def debug(image: str) -> Answer:
        change: Document = {"spec": {"ephemeralContainers": [{"name": "debug", "image": image}]}}
        return client.patch(f"{PODS}/p/ephemeralcontainers", change, STRATEGIC)

    assert debug("busybox").at("spec.ephemeralContainers.0.image") == "busybox"
    assert debug("other").status == 422
    gone = client.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": None}})
    assert gone.status == 422
    assert 'existing ephemeral containers "debug" may not be removed' in str(gone.at("message"))


def test_ephemeral_containers_are_checked_like_other_containers_of_a_pod(client: Client) -> None:
    reference = {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}
    container = {"name": "e", "image": " i", "env": [{"name": "A", "valueFrom": reference}]}
    answer = client.patch(f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [container]}})
    causes = answer.at("details.causes")

    assert answer.status == 422
    assert isinstance(causes, list)
    assert [each["field"] for each in causes] == [
        "spec.ephemeralContainers[0].image",
        "spec.ephemeralContainers[0].env[0].valueFrom.fileKeyRef.volumeName",
    ]


def test_a_gated_pod_cannot_get_an_affinity_without_a_node_affinity() -> None:
    client, spec = Client(), {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "a"}]}
    path = f"{PODS}/p"
    assert client.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}).status == 201
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}

    assert client.patch(path, {"spec": {"affinity": {}}}).status == 422
    assert client.patch(path, {"spec": {"affinity": {"nodeAffinity": node_affinity}}}).status == 200


@pytest.mark.parametrize(
    ("containers", "resources", "want"),
    [
        ([{"cpu": "1", "memory": "1Mi"}], None, "Guaranteed"),
        ([{"cpu": "1", "memory": "1Mi"}], {}, "BestEffort"),
        ([{"cpu": "1", "memory": "1Mi", "requests": {"cpu": "0"}}], None, "Burstable"),
    ],
)
def test_the_qos_class_depends_on_all_amounts(containers: list[Document], resources: object, want: str) -> None:
    made = []
    for index, limits in enumerate(containers):
        requests = limits.pop("requests", {})
        made.append({"name": f"c{index}", "image": "i", "resources": {"limits": limits, "requests": requests}})
    spec = {"containers": made} | ({} if resources is None else {"resources": resources})
    answer = Client().call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})

    assert answer.at("status.qosClass") == want
