"""Random API requests: a seed always gives the same ones, most kinds of errors occur, and nothing is stored."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from fuzz.api import OwnApi, comparable, is_compared
from fuzz.api_requests import DELETE_BODIES, ApiRequest, ResourcePath, random_request

from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.rest.messages import Request, parse_query
from bayplan.apiserver.rest.options import delete_options


def test_a_request_depends_only_on_seed_and_number() -> None:
    resources = OwnApi().resources()
    assert random_request(1, 7, resources) == random_request(1, 7, resources)
    assert len({random_request(1, number, resources).path for number in range(50)}) > 45


def test_requests_get_all_kinds_of_responses_and_store_nothing() -> None:
    own = OwnApi()
    resources, before = own.resources(), own.backend.store.revision
    requests = [random_request(1, number, resources) for number in range(400)]
    # Waiting for a version that does not exist takes seconds.
    statuses = Counter(own.answer(each)[0] for each in requests if "resourceVersion=9" not in each.path)
    assert {200, 400, 404, 405, 406, 415, 422} <= set(statuses)
    assert not [status for status in statuses if status > 501]
    assert own.backend.store.revision == before


def test_every_deletion_that_can_be_decoded_is_a_dry_run() -> None:
    for body in DELETE_BODIES:
        headers = {"content-type": "application/json"}
        with suppress(ApiError):
            options = delete_options(Request("DELETE", "/api/v1/pods", parse_query("dryRun=All"), headers, body))
            assert options.dry_run, body


def test_reads_and_deletions_of_objects_that_kube_apiserver_creates_are_not_compared() -> None:
    pods, roles = (ResourcePath("/api/v1", name, True) for name in ("pods", "roles"))
    assert is_compared(ApiRequest(pods, "GET", "/api/v1/namespaces/default/pods", {}, b""))
    assert not is_compared(ApiRequest(roles, "GET", "/api/v1/namespaces/default/roles", {}, b""))
    assert is_compared(ApiRequest(roles, "PATCH", "/api/v1/namespaces/default/roles/a", {}, b""))


def test_values_that_vary_are_masked() -> None:
    assert comparable(b'{"metadata":{"uid":"a"},"message":"at 17 of 00000000-0000-0000-0000-000000000001"}') == {
        "metadata": {"uid": ""},
        "message": "at N of U",
    }
    assert comparable(b"not JSON, 12") == "not JSON, N"
