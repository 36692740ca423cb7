"""The deletion of a collection: what a failure leaves undeleted."""

from __future__ import annotations

import pytest

from bayplan.apiserver.admission.outgoing import CallsNeededError
from bayplan.apiserver.model.errors import bad_request
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import rendering
from bayplan.apiserver.store.item import Item
from bayplan.base.plain_data import Document
from tests.apiserver.client import Client, names

MAPS = "/api/v1/namespaces/default/configmaps"
SCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"


def client_with_maps() -> Client:
    client = Client()
    for name in ("a", "b"):
        client.post(MAPS, {"metadata": {"name": name}})
    return client


@pytest.mark.parametrize("problem", [ZeroDivisionError(), CallsNeededError([])], ids=lambda each: type(each).__name__)
def test_an_internal_failure_while_the_list_is_rendered_deletes_nothing(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_with_maps()

    def fail(*_: object) -> bytes:
        raise problem

    monkeypatch.setattr(rendering, "render_page", fail)
    with pytest.raises(type(problem)):
        client.delete(MAPS)
    monkeypatch.undo()
    assert names(client.get(MAPS)) == ["a", "b"]


def test_a_recursion_error_while_the_list_is_rendered_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_with_maps()

    def fail(*_: object) -> bytes:
        raise RecursionError

    monkeypatch.setattr(rendering, "render_page", fail)
    assert client.delete(MAPS).status >= 400
    monkeypatch.undo()
    assert names(client.get(MAPS)) == ["a", "b"]


def test_a_list_that_cannot_be_sent_is_refused_after_the_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_with_maps()

    def refuse(*_: object) -> bytes:
        raise bad_request("not in this form")

    monkeypatch.setattr(rendering, "render_page", refuse)
    assert client.delete(MAPS).status == 400
    monkeypatch.undo()
    assert names(client.get(MAPS)) == []


def test_all_objects_are_converted_before_the_first_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    spec = {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
    for name in ("a", "b"):
        assert client.post(SCALERS, {"metadata": {"name": name}, "spec": spec}).status == 201
    convert, problems = client.backend.document, [CallsNeededError([]), bad_request("cannot convert")]

    def second_fails(resource: Resource, item: Item) -> Document:
        if item.name == "b":
            raise problems[-1]
        return convert(resource, item)

    monkeypatch.setattr(client.backend, "document", second_fails)
    assert client.delete(SCALERS).status == 400
    problems.pop()
    with pytest.raises(CallsNeededError):
        client.delete(SCALERS)
    monkeypatch.undo()
    assert names(client.get(SCALERS)) == ["a", "b"]


def test_the_warning_of_a_deletion_is_sent_with_its_error() -> None:
    client = Client()
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    assert client.post(jobs, {"metadata": {"name": "j"}, "spec": spec}).status == 201
    answer = client.delete(jobs, {"preconditions": {"uid": "other"}})
    assert answer.status == 409
    assert any("child pods are preserved by default" in value for name, value in answer.headers if name == "warning")


def test_a_refused_list_keeps_the_warning_about_preserved_pods() -> None:
    answer = Client().delete("/apis/batch/v1/namespaces/default/jobs?continue=abc")
    assert answer.status == 400
    assert any("child pods are preserved" in text for name, text in answer.headers if name.lower() == "warning")


@pytest.mark.parametrize("policy", ["", "Wrong"])
def test_a_wrong_policy_beside_orphan_dependents_is_reported_twice(policy: str) -> None:
    answer = Client().delete(MAPS, {"propagationPolicy": policy, "orphanDependents": True})
    causes = answer.at("details.causes")
    assert isinstance(causes, list)
    assert [each["reason"] for each in causes] == ["FieldValueInvalid", "FieldValueNotSupported"]


def test_a_limit_makes_no_revision_exact_in_a_list_by_name() -> None:
    client = client_with_maps()
    first = client.get(f"{MAPS}/a").at("metadata.resourceVersion")
    assert names(client.get(f"{MAPS}?limit=1&resourceVersion={first}&fieldSelector=metadata.name=b")) == ["b"]
    assert names(client.get(f"{MAPS}?limit=5&resourceVersion={first}&labelSelector=!x")) == ["a"]
