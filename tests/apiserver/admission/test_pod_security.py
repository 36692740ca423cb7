"""Pod security: the table of checks, policies in labels, and pods, templates and namespaces in the API.

Texts and verdicts of all checks are compared with a real kube-apiserver in `conformance/api` (`own_pod_security`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest

from bayplan.apiserver.admission.pod_security import LevelVersion, Policy, is_policed, policy_of
from bayplan.apiserver.admission.pod_security_checks import BASELINE, CHECKS, RESTRICTED, violations
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.rest.imported_objects import create_with_status
from tests.apiserver.bridge.bridge_fixture import APPS, BridgeFixture
from tests.apiserver.client import PODS, STRATEGIC, Answer, Client, Document, pod

DEFAULT = "/api/v1/namespaces/default"
PREFIX = "pod-security.kubernetes.io/"
MINORS = range(40)


def on_the_host(document: Document) -> None:
    cast("Document", document["spec"])["hostPID"] = True


def label(client: Client, path: str = DEFAULT, **labels: str | None) -> Answer:
    """Change the labels of a namespace; None removes one."""
    return client.patch(path, {"metadata": {"labels": {PREFIX + name: value for name, value in labels.items()}}})


def warnings(answer: Answer) -> list[str]:
    return [value for name, value in answer.headers if name == "warning"]


# --- the table --------------------------------------------------------------------------------------------------------


def test_checks_are_unique_and_sorted_by_level_and_name() -> None:
    found = [(check.level, check.name) for check in CHECKS]
    assert found == sorted(set(found))


def test_check_versions_are_sorted_ascending() -> None:
    for check in CHECKS:
        minors = [since for since, _ in check.versions]
        assert all(one < two for one, two in pairwise(minors)), check.name


def test_only_restricted_checks_replace_checks_and_only_baseline_ones() -> None:
    baseline = {check.name for check in CHECKS if check.level == BASELINE}
    assert {check.replaces for check in CHECKS if check.level == RESTRICTED} <= baseline | {""}
    assert {check.replaces for check in CHECKS if check.level == BASELINE} == {""}


@pytest.mark.parametrize("spec", [{"hostPID": True}, {"hostUsers": False}, {"os": {"name": "windows"}}, {}])
def test_future_versions_use_the_latest_checks_and_restricted_includes_baseline(
    spec: Document,
) -> None:
    context = {"procMount": "Unmasked", "seccompProfile": {"type": "Unconfined"}, "capabilities": {"add": ["SYS_TIME"]}}
    document: Document = {"spec": {"containers": [{"name": "c", "securityContext": context}], **spec}}
    for level in (BASELINE, RESTRICTED):
        assert violations(level, "latest", document) == violations(level, "v1.35", document)
        assert violations(level, "v1.99", document) == violations(level, "v1.35", document)
    for minor in MINORS:
        if violations(BASELINE, f"v1.{minor}", document):
            assert violations(RESTRICTED, f"v1.{minor}", document)
        assert violations("privileged", f"v1.{minor}", document) == []


# --- policies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "enforce", "warn"),
    [
        pytest.param({}, "privileged", "privileged", id="no labels"),
        pytest.param({"enforce": "baseline"}, "baseline", "baseline", id="warn follows enforce"),
        pytest.param(
            {"enforce": "baseline", "enforce-version": "v1.20"},
            "baseline:v1.20",
            "baseline:v1.20",
            id="with its version",
        ),
        pytest.param(
            {"enforce": "baseline", "enforce-version": "v1.20", "warn-version": "v1.30"},
            "baseline:v1.20",
            "baseline:v1.30",
            id="a namespace with its own label",
        ),
        pytest.param(
            {"enforce": "restricted", "warn": "privileged"}, "restricted", "privileged", id="unless it has a level"
        ),
        pytest.param({"warn": "restricted", "warn-version": "v1.0"}, "privileged", "restricted:v1.0", id="only warn"),
        pytest.param({"enforce": "strict"}, "restricted", "privileged", id="a wrong level to enforce"),
        pytest.param(
            {"warn": "strict", "enforce": "baseline"}, "baseline", "privileged", id="a wrong level to warn of"
        ),
        pytest.param({"enforce": "baseline", "enforce-version": "1.20"}, "baseline", "baseline", id="a wrong version"),
    ],
)
def test_namespace_labels_set_the_enforce_and_warn_levels(labels: dict[str, str], enforce: str, warn: str) -> None:
    """A level without a version stands for its latest."""
    levels = [LevelVersion(*f"{text}:latest".split(":")[:2]) for text in (enforce, warn)]
    assert policy_of({PREFIX + name: value for name, value in labels.items()}) == Policy(*levels)


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({}, False, id="no labels"),
        pytest.param({"kubernetes.io/metadata.name": "shop"}, False, id="the label that all have"),
        pytest.param({f"{PREFIX}audit": "restricted", f"{PREFIX}enforce-version": "v1.20"}, False, id="a change without effect"),
        pytest.param({f"{PREFIX}enforce": "privileged"}, True, id="a level"),
        pytest.param({f"{PREFIX}warn": "baseline"}, True, id="a level to warn of"),
    ],
)  # fmt: skip
def test_only_namespaces_with_an_enforce_or_warn_level_are_policed(labels: dict[str, str], want: bool) -> None:
    assert is_policed(labels) == want


# --- the API ----------------------------------------------------------------------------------------------------------


def test_a_cached_pod_template_is_rejected_once_its_namespace_enforces_a_level() -> None:
    client = Client()
    # The pod template cache contains the spec from the third pod on.
    assert [client.post(PODS, pod(f"p{number}", on_the_host)).status for number in range(4)] == [201] * 4
    label(client, enforce="baseline")
    refused = client.post(PODS, pod("late", on_the_host))
    want = 'pods "late" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert (refused.status, refused.at("message")) == (403, want)
    label(client, enforce=None)
    assert client.post(PODS, pod("late", on_the_host)).status == 201


def test_each_pod_of_a_cached_template_returns_the_warning() -> None:
    client = Client()
    label(client, warn="baseline")
    want = ['299 - "would violate PodSecurity \\"baseline:latest\\": host namespaces (hostPID=true)"']
    assert [warnings(client.post(PODS, pod(f"p{number}", on_the_host))) for number in range(4)] == [want] * 4


def test_copied_pods_are_exempt_from_pod_security() -> None:
    client = Client()
    label(client, enforce="restricted")
    resource = client.backend.registry.by_kind("v1", "Pod")
    assert resource is not None
    create_with_status(
        client.backend, RequestInfo("create", resource, "default"), pod("p", on_the_host), WriteOptions()
    )
    assert client.get(f"{PODS}/p").status == 200


def test_controllers_emit_failed_create_events_for_rejected_pods() -> None:
    fixture = BridgeFixture(nodes=1)
    label(fixture, enforce="baseline")
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"hostPID": True, "containers": [{"name": "c", "image": "x"}]},
    }
    deployment = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = fixture.post(f"{APPS}/deployments", {"metadata": {"name": "web"}, "spec": deployment})
    assert (made.status, len(warnings(made))) == (201, 1)
    fixture.run(5)
    assert fixture.get(PODS).document["items"] == []
    events = cast("list[dict[str, str]]", fixture.get(f"{DEFAULT}/events").document["items"])
    refusals = [event["message"] for event in events if event["reason"] == "FailedCreate"]
    want = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert refusals
    assert all(message.endswith(want) for message in refusals)
    # Existing pods stay, and changes that do not affect their security are accepted.
    label(fixture, enforce=None)
    fixture.run(600)
    label(fixture, enforce="baseline")
    [running] = cast("list[Document]", fixture.get(PODS).document["items"])
    path = f"{PODS}/{cast('Document', running['metadata'])['name']}"
    image = {"spec": {"containers": [{"name": "c", "image": "y"}]}}
    assert fixture.patch(path, {"metadata": {"labels": {"x": "y"}}}).status == 200
    assert fixture.patch(path, image, content_type=STRATEGIC).status == 403


def test_a_new_enforce_level_checks_at_most_3000_pods_and_one_pod_per_controller_first() -> None:
    client = Client()
    owner: Document = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}

    def owned(document: Document) -> None:
        cast("Document", document["metadata"])["ownerReferences"] = [owner]

    for number in range(3_000):
        client.post(PODS, pod(f"a-{number:04}", owned))
    client.post(PODS, pod("z", on_the_host))
    assert warnings(label(client, enforce="baseline")) == [
        '299 - "new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods"',
        '299 - "existing pods in namespace \\"default\\" violate the new PodSecurity enforce level \\"baseline:latest\\""',
        '299 - "z: host namespaces"',
    ]
