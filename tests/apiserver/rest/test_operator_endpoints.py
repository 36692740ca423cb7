"""`/flagz`, `/statusz`, `/metrics/slis`, and OpenAPI documents of endpoints that are not resources."""

from __future__ import annotations

import asyncio
import json

import pytest

from bayplan.apiserver.rest.messages import Request, Response, parse_query
from tests.apiserver.client import Client


@pytest.fixture
def client() -> Client:
    return Client()


def answer(client: Client, path: str, accept: str = "", method: str = "GET", query: str = "") -> Response:
    found = asyncio.run(
        client.api.handle(Request(method, path, {"exclude": query} if query else {}, {"accept": accept}, b""))
    )
    assert isinstance(found, Response)
    return found


@pytest.mark.parametrize("kind", ["Flagz", "Statusz"])
@pytest.mark.parametrize(
    ("form", "want"),
    [
        pytest.param("", "text/plain; charset=utf-8", id="anything"),
        pytest.param("text/plain", "text/plain; charset=utf-8", id="text"),
        pytest.param("application/json", "", id="JSON without a kind"),
        pytest.param("application/json;v=v1;g=config.k8s.io;as={}", "", id="an unknown version"),
        pytest.param("application/json;v=v1beta1;g=config.k8s.io;as=Nope", "", id="an unknown kind"),
        pytest.param(
            "application/json;v=v1beta1;g=config.k8s.io;as={}",
            "application/json;g=config.k8s.io;v=v1beta1;as={}",
            id="JSON",
        ),
        pytest.param(
            "text/html, application/yaml;as={};v=v1alpha1;g=config.k8s.io",
            "application/yaml;g=config.k8s.io;v=v1alpha1;as={}",
            id="YAML",
        ),
    ],
)
def test_flags_and_status_have_the_requested_format(client: Client, kind: str, form: str, want: str) -> None:
    found = answer(client, f"/{kind.lower()}", form.format(kind), "POST")
    assert (found.status, found.content_type) == (200, want.format(kind)) if want else (406, "application/json")
    if want.startswith("text"):
        assert found.body.startswith(f"\napiserver {kind.lower()}\nWarning: ".encode())
    elif want.startswith("application/json"):
        assert json.loads(found.body)["metadata"] == {"name": "apiserver"}


def test_health_checks_are_counted(client: Client) -> None:
    assert b'{name="ping"' not in answer(client, "/metrics/slis").body
    answer(client, "/livez")
    answer(client, "/readyz/ping")
    answer(client, "/readyz", query="ping")
    found = answer(client, "/metrics/slis").body.decode()
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1\n' in found
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 1\n' in found
    assert 'kubernetes_healthchecks_total{name="log",status="success",type="readyz"} 1\n' in found


def test_every_document_of_the_openapi_index_is_served(client: Client) -> None:
    paths = json.loads(answer(client, "/openapi/v3").body)["paths"]
    assert {"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "openid/v1/jwks", "version"} <= paths.keys()
    for path, each in paths.items():
        document = json.loads(answer(client, f"/openapi/v3/{path}").body)
        assert document["openapi"] == "3.0.0"
        assert each["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")
        if path.count("/") < 2 and path != "api/v1":
            assert list(document["paths"]) == [f"/{path}/"]
    assert answer(client, "/openapi/v3/apis/nope").status == 404


def test_metrics_of_checks_are_empty_before_the_first_check(client: Client) -> None:
    assert answer(client, "/metrics/slis").body == b""


def test_the_start_and_the_uptime_are_written_as_go_writes_them(client: Client) -> None:
    # The API started on Thursday, 1 January 2026, at midnight.
    client.seconds += 3 * 3600 + 4 * 60 + 5
    text = answer(client, "/statusz").body.decode()
    assert "\nStarted: Thu Jan  1 00:00:00 UTC 2026\nUp: 3 hr 04 min 05 sec\n" in text


def test_the_uptime_is_0_if_the_clock_is_set_back(client: Client) -> None:
    client.seconds -= 100
    assert "\nUp: 0 hr 00 min 00 sec\n" in answer(client, "/statusz").body.decode()


def test_unknown_excluded_checks_are_listed_sorted(client: Client) -> None:
    query = parse_query("verbose&exclude=z&exclude=a&exclude=z")
    found = asyncio.run(client.api.handle(Request("GET", "/livez", query, {}, b"")))
    assert isinstance(found, Response)
    assert b'no matches for "a","z"\n' in found.body
