"""Runtime classes: their overhead, their node selectors, and the pods they reject; the default priority class."""

from __future__ import annotations

from typing import cast

import pytest

from tests.apiserver.client import PODS, Client, Document, pod

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
SCHEDULING: Document = {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]}


@pytest.fixture
def client() -> Client:
    client = Client()
    runtime: Document = {"metadata": {"name": "vm"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1000m"}}}
    assert client.post(CLASSES, {**runtime, "scheduling": SCHEDULING}).status == 201
    assert client.post(CLASSES, {"metadata": {"name": "free"}, "handler": "h"}).status == 201
    nothing: Document = {"metadata": {"name": "zero"}, "handler": "h", "overhead": {"podFixed": {}}}
    assert client.post(CLASSES, nothing).status == 201
    return client


def of(spec: Document) -> Document:
    return pod("p", lambda new: cast("Document", new["spec"]).update(spec))


def test_a_pod_gets_the_overhead_node_selector_and_tolerations_of_its_runtime_class(client: Client) -> None:
    tolerated = {"key": "vm", "operator": "Equal", "value": "a"}
    spec: Document = {"runtimeClassName": "vm", "nodeSelector": {"a": "b"}, "tolerations": [tolerated]}
    created = client.post(PODS, of(spec))
    assert created.status == 201
    assert created.at("spec.overhead") == {"cpu": "1"}
    assert created.at("spec.nodeSelector") == {"a": "b", "vm": "yes"}
    tolerations = cast("list[Document]", created.at("spec.tolerations"))
    assert [(each["key"], each["operator"]) for each in tolerations if each["key"] == "vm"] == [("vm", "Exists")]
    assert len(tolerations) == 3


def test_equal_pods_get_the_current_overhead_of_their_runtime_class(client: Client) -> None:
    client.post(PODS, of({"runtimeClassName": "vm"}))
    other = {**of({"runtimeClassName": "vm"}), "metadata": {"name": "q"}}
    client.delete(f"{CLASSES}/vm")
    client.post(CLASSES, {"metadata": {"name": "vm"}, "handler": "h"})
    assert client.post(PODS, other).at("spec.overhead") is None
    assert client.get(f"{PODS}/p").at("spec.overhead") == {"cpu": "1"}


@pytest.mark.parametrize(("name", "want"), [("vm", {"cpu": "1"}), ("zero", None)])
def test_an_empty_overhead_is_replaced_by_that_of_the_runtime_class(client: Client, name: str, want: object) -> None:
    created = client.post(PODS, of({"runtimeClassName": name, "overhead": {}}))
    assert (created.status, created.at("spec.overhead")) == (201, want)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "free", "overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "vm", "overhead": {"cpu": "2"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "zero", "overhead": {"cpu": "2"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no",
        ),
    ],
)
def test_pods_conflicting_with_their_runtime_class_are_refused(client: Client, spec: Document, why: str) -> None:
    answer = client.post(PODS, of(spec))
    assert (answer.status, answer.at("message")) == (403, f'pods "p" is forbidden: {why}')


def test_a_second_class_cannot_be_the_default_even_with_the_name_of_the_default(client: Client) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    usual: Document = {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}
    assert client.post(classes, usual).status == 201
    for name in ("usual", "other"):
        answer = client.post(classes, {**usual, "metadata": {"name": name}})
        want = f"{name} is already" if name == "usual" else "usual is already marked as default"
        assert (answer.status, want in str(answer.at("message"))) == (403, True)
    assert client.patch(f"{classes}/usual", {"globalDefault": True, "description": "d"}).status == 200
    assert client.post(classes, {**usual, "value": 1000000001}).status == 422
