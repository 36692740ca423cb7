"""The scale subresource: what it changes, what it refuses, and who owns the replicas afterwards."""

from __future__ import annotations

import pytest

from tests.apiserver.client import APPLY, MERGE, STRATEGIC, Client, Document

PATH = "/apis/apps/v1/namespaces/default/deployments"
SCALE = f"{PATH}/d/scale"
DEPLOYMENT: Document = {
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


@pytest.fixture
def client() -> Client:
    client = Client()
    assert client.post(PATH, DEPLOYMENT).status == 201
    return client


@pytest.mark.parametrize(
    ("metadata", "want"),
    [
        pytest.param({"name": "d"}, 200, id="the name is enough"),
        pytest.param({}, 400, id="without a name"),
        pytest.param({"name": "e"}, 400, id="another name"),
        pytest.param({"name": "d", "labels": {"Bad Key!": "x"}}, 422, id="labels are checked"),
        pytest.param({"name": "d", "finalizers": ["bad"]}, 422, id="finalizers as well"),
        pytest.param({"name": "d", "uid": "other"}, 409, id="another uid"),
        pytest.param({"name": "d", "resourceVersion": "1"}, 409, id="an old version"),
        pytest.param({"name": "d", "resourceVersion": "x"}, 500, id="a version that is no number"),
    ],
)
def test_an_invalid_scale_update_is_refused(client: Client, metadata: Document, want: int) -> None:
    assert client.put(SCALE, {"metadata": metadata, "spec": {"replicas": 5}}).status == want
    assert client.get(f"{PATH}/d").at("spec.replicas") == (5 if want == 200 else 2)


def test_applying_a_scale_conflicts_with_another_manager_of_replicas_unless_forced(client: Client) -> None:
    wanted = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 5}}
    refused = client.patch(f"{SCALE}?fieldManager=me", wanted, APPLY)
    assert refused.status == 409
    assert refused.at("details.causes.0.field") == ".spec.replicas"
    assert client.patch(f"{SCALE}?fieldManager=me&force=true", wanted, APPLY).at("spec.replicas") == 5
    owners = client.get(f"{PATH}/d").at("metadata.managedFields")
    assert isinstance(owners, list)
    assert [each["manager"] for each in owners if each.get("subresource") == "scale"] == ["me"]


def test_an_unknown_field_in_a_scale_returns_a_warning(client: Client) -> None:
    answer = client.patch(SCALE, {"spec": {"nope": 1}}, MERGE)
    assert [value for name, value in answer.headers if name == "warning"] == ['299 - "unknown field \\"spec.nope\\""']


def test_the_selector_of_one_key_has_its_label_first() -> None:
    client = Client()
    selector: Document = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
    }
    assert client.post(PATH, {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "selector": selector}}).status == 201  # type: ignore[dict-item]
    assert client.get(SCALE).at("status.selector") == "a=b,a in (b)"


def test_a_scale_is_also_returned_as_metadata(client: Client) -> None:
    answer = client.get(SCALE, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    assert answer.at("kind") == "PartialObjectMetadata"
    assert answer.document.keys() == {"kind", "apiVersion", "metadata"}


def scale_managers(client: Client) -> list[object]:
    owners = client.get(f"{PATH}/d").at("metadata.managedFields")
    assert isinstance(owners, list)
    return [each["manager"] for each in owners if each.get("subresource") == "scale"]


def configuration(**spec: object) -> Document:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": spec}


def test_a_manager_that_applies_an_empty_spec_keeps_the_replicas(client: Client) -> None:
    client.patch(f"{SCALE}?fieldManager=me&force=true", configuration(replicas=5), APPLY)
    assert client.patch(f"{SCALE}?fieldManager=me", configuration(), APPLY).at("spec.replicas") is None
    assert scale_managers(client) == ["me"]
    assert client.patch(f"{SCALE}?fieldManager=you", configuration(replicas=3), APPLY).status == 409


def test_applied_zero_replicas_conflict_with_an_owner_although_there_are_none(client: Client) -> None:
    client.patch(f"{SCALE}?fieldManager=me&force=true", configuration(replicas=0), APPLY)
    assert client.patch(f"{SCALE}?fieldManager=you", configuration(replicas=0), APPLY).status == 409
    assert client.patch(f"{SCALE}?fieldManager=you&force=true", configuration(replicas=0), APPLY).status == 200
    assert scale_managers(client) == ["you"]


def test_an_update_to_the_same_zero_replicas_keeps_their_owner(client: Client) -> None:
    client.patch(f"{SCALE}?fieldManager=me&force=true", configuration(replicas=0), APPLY)
    assert client.put(SCALE, configuration(replicas=0)).status == 200
    assert scale_managers(client) == ["me"]


def test_only_a_patch_with_another_uid_names_the_subresource(client: Client) -> None:
    update = client.put(SCALE, {**configuration(replicas=1), "metadata": {"name": "d", "uid": "x"}})
    assert update.at("details.kind") == "deployments"
    assert "StorageError: invalid object, Code: 4" in str(update.at("message"))
    assert client.patch(SCALE, {"metadata": {"uid": "x"}}, MERGE).at("details.kind") == "deployments/scale"


def _scale(replicas: object, **metadata: object) -> Document:
    head: Document = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    return {**head, "metadata": {"name": "d", **metadata}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    "applied",
    [
        pytest.param(_scale(5, name="e"), id="another name"),
        pytest.param(_scale(5, uid="x"), id="another uid"),
        pytest.param(_scale(-1), id="an invalid number"),
        pytest.param(_scale(None), id="null"),
    ],
)
def test_a_conflict_about_replicas_is_found_before_other_mistakes(client: Client, applied: Document) -> None:
    answer = client.patch(f"{SCALE}?fieldManager=me", applied, APPLY)
    assert (answer.status, answer.at("details.causes.0.reason")) == (409, "FieldManagerConflict")


@pytest.mark.parametrize(("applied", "want"), [(None, 200), (2**32, 200), (2**31, 422)])
def test_applied_replicas_may_be_null_and_are_converted_to_32_bits(client: Client, applied: object, want: int) -> None:
    answer = client.patch(f"{SCALE}?fieldManager=me&force=true", _scale(applied), APPLY)
    assert answer.status == want
    assert client.get(f"{PATH}/d").at("spec.replicas") == (0 if want == 200 else 2)


def test_an_update_of_a_scale_with_another_uid_is_refused_before_its_replicas_are_checked(client: Client) -> None:
    assert client.put(SCALE, _scale(-1, uid="x")).status == 409


@pytest.mark.parametrize(
    ("replicas", "content_type", "want"),
    [
        pytest.param(3.0, STRATEGIC, (200, 3), id="a whole float in a strategic patch"),
        pytest.param(2**31, STRATEGIC, (422, 2), id="a number that becomes negative"),
        pytest.param(3.0, MERGE, (422, 2), id="a whole float in a merge patch"),
        pytest.param(1.5, APPLY, (500, 2), id="an applied fraction"),
    ],
)
def test_patched_replicas_are_converted_as_in_go(
    client: Client, replicas: object, content_type: str, want: tuple[int, int]
) -> None:
    body = _scale(replicas) if content_type == APPLY else {"spec": {"replicas": replicas}}
    path = f"{SCALE}?fieldManager=me&force=true" if content_type == APPLY else SCALE
    answer = client.patch(path, body, content_type)
    assert (answer.status, client.get(f"{PATH}/d").at("spec.replicas")) == want


def test_the_error_of_a_patch_shows_the_owners_of_the_replicas(client: Client) -> None:
    answer = client.patch(SCALE, {"spec": {"replicas": "x"}}, MERGE)
    message = str(answer.at("message")).replace("\\", "")
    assert '"managedFields":[{"manager":"' in message
    assert '"apiVersion":"autoscaling/v1","time":"' in message
    assert '"fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":"x"}' in message
