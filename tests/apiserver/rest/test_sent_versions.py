"""Versions of objects in writes: numbers, and whether a kind requires one."""

from __future__ import annotations

import pytest

from tests.apiserver.client import APPLY, MERGE, Answer, Client

_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_MAPS = "/api/v1/namespaces/default/configmaps"
_HEADS = {
    _BUDGETS: {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"},
    _MAPS: {"apiVersion": "v1", "kind": "ConfigMap"},
}
_REQUIRED = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"


def _applied(path: str, metadata: dict[str, object]) -> Answer:
    client = Client()
    assert client.post(path, {"metadata": {"name": "a"}}).status == 201
    body = {**_HEADS[path], "metadata": {"name": "a", **metadata}}
    return client.patch(f"{path}/{metadata.get('name', 'a')}?fieldManager=m", body, APPLY)


@pytest.mark.parametrize(
    ("path", "metadata", "status", "message"),
    [
        pytest.param(_BUDGETS, {}, 200, "", id="no version"),
        pytest.param(_BUDGETS, {"resourceVersion": "0"}, 422, _REQUIRED, id="zero for a kind that requires versions"),
        pytest.param(_BUDGETS, {"resourceVersion": ""}, 422, _REQUIRED, id="an empty one for such a kind"),
        pytest.param(_BUDGETS, {"resourceVersion": "1"}, 409, "has been modified", id="an old version"),
        pytest.param(_MAPS, {"resourceVersion": "0"}, 200, "", id="zero for another kind"),
        pytest.param(_MAPS, {"resourceVersion": "x"}, 500, 'parsing "x": invalid syntax', id="not a number"),
        pytest.param(
            _MAPS, {"name": "new", "resourceVersion": "x"}, 500, 'parsing "x": invalid syntax', id="of a new object"
        ),
    ],
)
def test_versions_of_applied_configurations(path: str, metadata: dict[str, object], status: int, message: str) -> None:
    answer = _applied(path, metadata)
    assert answer.status == status
    assert message in str(answer.at("message") or "")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param("00", 200, id="zero in two digits is no version"),
        pytest.param("1" * 5_000, 500, id="too large for 64 bits"),
        pytest.param("٣", 500, id="a digit of another script"),
    ],
)
def test_versions_are_numbers(sent: str, status: int) -> None:
    client = Client()
    assert client.post(_MAPS, {"metadata": {"name": "a"}}).status == 201
    assert client.patch(f"{_MAPS}/a", {"metadata": {"resourceVersion": sent}}, MERGE).status == status


def test_a_deletion_of_a_collection_that_claims_to_watch_has_the_rules_of_watches() -> None:
    answer = Client().delete(f"{_MAPS}?watch=true&resourceVersionMatch=Exact&resourceVersion=1")
    assert answer.status == 422
    assert "forbidden for watch unless sendInitialEvents is provided" in str(answer.at("message"))


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param("0", 201, id="zero"),
        pytest.param("00", 201, id="zero in two digits"),
        pytest.param("x", 201, id="not a number counts as none"),
        pytest.param("5", 500, id="a number"),
    ],
)
def test_a_new_object_must_not_have_a_version(sent: str, status: int) -> None:
    answer = Client().post(_MAPS, {"metadata": {"name": "a", "resourceVersion": sent}})
    assert answer.status == status
    assert answer.at("metadata.resourceVersion") != sent


@pytest.mark.parametrize("dry_run", [True, False], ids=["a dry run", "a write"])
def test_creates_by_updates_and_applies_return_the_version_that_was_sent_only_in_dry_runs(dry_run: bool) -> None:
    client, leases = Client(), "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    metadata, query = {"name": "a", "resourceVersion": "99"}, "dryRun=All" if dry_run else ""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    updated = client.put(f"{leases}/a?{query}", lease)
    applied = client.patch(f"{_MAPS}/a?fieldManager=m&{query}", {**_HEADS[_MAPS], "metadata": metadata}, APPLY)
    for answer in (updated, applied):
        assert answer.status == 201
        assert (answer.at("metadata.resourceVersion") == "99") is dry_run
