"""Requests of Bayplan's controllers for a Deployment of two pods equal those recorded from kube-controller-manager."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from typing import cast

import pytest

from tests.apiserver.bridge.bridge_fixture import APPS, BridgeFixture
from tests.apiserver.client import Document
from tests.shared import shared_path

SESSION = "kube-controller-manager startup and a few pods"
# Admission adds these fields to the objects that controllers send.
ADMITTED = ("priority", "preemptionPolicy", "tolerations", "enableServiceLinks")
SERVER_OWNED = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace")


@pytest.fixture(scope="module")
def recorded() -> list[tuple[str, Document]]:
    """Return the recorded requests, as ``method path`` and body."""
    with gzip.open(shared_path("conformance", "api", "clients.jsonl.gz"), "rt", encoding="utf-8") as lines:
        session = next(found for line in lines if (found := json.loads(line))["session"] == SESSION)
    return [
        (f"{each['method']} {each['path'].partition('?')[0]}", each["request_body"])
        for each in session["exchanges"]
        if each["method"] != "GET" and each.get("request_body") and each["status"] in (200, 201)
    ]


@pytest.fixture(scope="module")
def fixture(recorded: list[tuple[str, Document]]) -> BridgeFixture:
    """A cluster in which the same Deployment was created."""
    written = last(recorded, r"PUT .*/deployments/web/status")
    fixture = BridgeFixture()
    answer = fixture.post(f"{APPS}/deployments", {"metadata": {"name": "web"}, "spec": written["spec"]})
    assert answer.status == 201
    fixture.run()
    return fixture


def last(recorded: list[tuple[str, Document]], pattern: str) -> Document:
    """Return the last body that was sent with a matching ``method path``."""
    return [body for request, body in recorded if re.fullmatch(pattern, request)][-1]


def masked(value: object) -> object:
    """Return a value with the parts masked that vary between runs: template hashes, suffixes of pods, uids and times."""
    if isinstance(value, Mapping):
        return {
            name: "HASH"
            if name == "pod-template-hash"
            else "VARIES"
            if name == "uid" or name.endswith("Time")
            else masked(item)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return sorted((masked(item) for item in value), key=str)
    return re.sub(r"\bweb-[a-z0-9]{8,10}\b(-[a-z0-9]{5}\b)?", "web-HASH", value) if isinstance(value, str) else value


def bare(document: Document, *left_out: str) -> Document:
    """Return a stored document as its writer sent it."""
    metadata = {name: item for name, item in cast("Document", document["metadata"]).items() if name not in SERVER_OWNED}
    return {
        **{name: item for name, item in document.items() if name not in ("kind", "apiVersion", *left_out)},
        "metadata": metadata,
    }


def test_the_replica_set_matches_the_recording(recorded: list[tuple[str, Document]], fixture: BridgeFixture) -> None:
    want = bare(last(recorded, r"POST .*/namespaces/default/replicasets"), "status")
    (found,) = fixture.documents("apps/replicasets")
    assert masked(bare(found, "status")) == masked(want)


def test_pods_match_the_recording(recorded: list[tuple[str, Document]], fixture: BridgeFixture) -> None:
    want = bare(last(recorded, r"POST .*/namespaces/default/pods"), "status")
    pods = fixture.documents("pods")
    assert len(pods) == 2
    for pod in pods:
        found = bare(pod, "status")
        found["spec"] = {name: item for name, item in cast("Document", found["spec"]).items() if name not in ADMITTED}
        cast("Document", found["metadata"]).pop("name")
        assert masked(found) == masked(want)


@pytest.mark.parametrize(
    ("path", "table"),
    [
        pytest.param(r".*/deployments/web/status", "apps/deployments", id="of the Deployment"),
        pytest.param(r".*/replicasets/web-[a-z0-9]*/status", "apps/replicasets", id="of the ReplicaSet"),
    ],
)
def test_the_final_status_matches_the_recording(
    recorded: list[tuple[str, Document]], fixture: BridgeFixture, path: str, table: str
) -> None:
    want = last(recorded, f"PUT {path}")
    (found,) = fixture.documents(table)
    assert masked(found["status"]) == masked(want["status"])
    metadata, wanted = (cast("Document", each["metadata"]) for each in (found, want))
    assert (metadata["generation"], masked(metadata["annotations"])) == (
        wanted["generation"],
        masked(wanted["annotations"]),
    )


def test_events_match_the_recording(recorded: list[tuple[str, Document]], fixture: BridgeFixture) -> None:
    def reported(event: Document) -> object:
        involved = cast("Document", event["involvedObject"])
        fields = {**bare(event), "involvedObject": {**involved, "resourceVersion": ""}}
        metadata = cast("dict[str, str]", fields.pop("metadata"))
        assert re.fullmatch(rf"{involved['name']}\.[0-9a-f]{{16}}", metadata["name"])
        return masked({name: item for name, item in fields.items() if not name.endswith("Timestamp")})

    sent = [body for request, body in recorded if request == "POST /api/v1/namespaces/default/events"]
    want = [reported(body) for body in sent if cast("Document", body["involvedObject"])["kind"] != "Node"]
    found = [reported(event) for event in fixture.documents("events")]
    assert sorted(found, key=str) == sorted(want, key=str)


@pytest.mark.parametrize("plural", ["serviceaccounts", "configmaps"])
def test_default_namespace_objects_match_the_recording(
    recorded: list[tuple[str, Document]], fixture: BridgeFixture, plural: str
) -> None:
    want = last(recorded, f"POST /api/v1/namespaces/kube-public/{plural}")
    (found,) = fixture.documents(plural, "kube-public")
    assert bare(found) == bare(want)
