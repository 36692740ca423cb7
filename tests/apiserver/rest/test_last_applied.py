"""kubectl's annotation of client-side apply, when kubectl applies on the server's side."""

from __future__ import annotations

import json

import pytest

from bayplan.base.plain_data import Document
from tests.apiserver.client import APPLY, Client

MAPS = "/api/v1/namespaces/default/configmaps"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def configuration(data: Document, **metadata: object) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", **metadata}, "data": data}


def applied_by_kubectl(annotation: str, data: Document) -> Client:
    """Create a config map as kubectl's client-side apply does."""
    client = Client()
    written = configuration(data, annotations={LAST_APPLIED: annotation})
    assert client.post(f"{MAPS}?fieldManager=kubectl-client-side-apply", written).status == 201
    return client


def conflicts(client: Client, data: Document, manager: str = "kubectl") -> list[object]:
    """Apply data and return the fields in conflict."""
    answer = client.patch(f"{MAPS}/m?fieldManager={manager}", configuration(data), APPLY)
    causes = answer.at("details.causes")
    return [each["field"] for each in causes] if isinstance(causes, list) else []


SAME = json.dumps(configuration({"a": "1", "b": "2"}))


@pytest.mark.parametrize(
    ("annotation", "manager", "want"),
    [
        pytest.param(SAME, "kubectl", [], id="values of the last client-side apply do not conflict"),
        pytest.param(SAME, "other", [".data.a", ".data.b"], id="only kubectl uses the annotation"),
        pytest.param(
            json.dumps(configuration({"a": "9", "b": "2"})), "kubectl", [".data.a"], id="a value changed since"
        ),
        pytest.param(json.dumps(configuration({"b": "2"})), "kubectl", [".data.a"], id="a field is missing"),
        pytest.param("{", "kubectl", [".data.a", ".data.b"], id="not JSON"),
        pytest.param(SAME.replace('"v1"', '"v2"'), "kubectl", [".data.a", ".data.b"], id="another version"),
        pytest.param(SAME.replace('"1"', "1"), "kubectl", [".data.a", ".data.b"], id="a wrong type"),
        pytest.param(SAME.replace('"data"', '"nope"'), "kubectl", [".data.a", ".data.b"], id="an unknown field"),
    ],
)
def test_conflicts_with_client_side_apply_are_about_values_outside_the_annotation(
    annotation: str, manager: str, want: list[object]
) -> None:
    client = applied_by_kubectl(annotation, {"a": "1", "b": "2"})
    assert conflicts(client, {"a": "5", "b": "6"}, manager) == want


@pytest.mark.parametrize(
    ("annotations", "data", "want"),
    [
        pytest.param({"x": "<ü>", "y": None}, {"a": "2"}, {"x": "<ü>", "y": ""}, id="null is the empty string"),
        pytest.param({LAST_APPLIED: "zz"}, {"a": "2"}, {}, id="the configuration contains the annotation"),
    ],
)
def test_apply_of_kubectl_updates_the_annotation(annotations: Document, data: Document, want: Document) -> None:
    client = applied_by_kubectl("{}", {"a": "2"})
    answer = client.patch(
        f"{MAPS}/m?fieldManager=kubectl&force=true", configuration(data, annotations=annotations), APPLY
    )
    found = answer.at("metadata.annotations")
    assert isinstance(found, dict)
    assert json.loads(found[LAST_APPLIED]) == configuration(data, annotations=want)
    assert "<" not in found[LAST_APPLIED]
    assert found[LAST_APPLIED].endswith("}\n")


def test_apply_of_kubectl_adds_no_annotation_to_objects_without_one() -> None:
    client = Client()
    config = configuration({"a": "1"}, annotations={LAST_APPLIED: "{}"})
    client.patch(f"{MAPS}/m?fieldManager=kubectl", config, APPLY)
    answer = client.patch(f"{MAPS}/m?fieldManager=kubectl", configuration({"a": "2"}), APPLY)
    assert answer.at("metadata.annotations") is None


def test_the_annotation_is_dropped_if_the_annotations_become_too_large() -> None:
    client = applied_by_kubectl("{}", {"a": "1"})
    answer = client.patch(f"{MAPS}/m?fieldManager=kubectl&force=true", configuration({"a": "y" * 300_000}), APPLY)
    assert (answer.status, answer.at("metadata.annotations")) == (200, None)
