"""Component statuses: the health of the scheduler, the controllers and the store."""

from __future__ import annotations

import pytest

from bayplan.apiserver.bridge.bridge import Bridge, BridgeOptions
from tests.apiserver.client import Client

BASE = "/api/v1/componentstatuses"
REFUSED = 'Get "https://127.0.0.1:10259/healthz": dial tcp 127.0.0.1:10259: connect: connection refused'


def test_components_that_do_not_run_are_unhealthy() -> None:
    answer = Client().get(BASE)

    assert answer.at("metadata") == {}
    assert [answer.at(f"items.{index}.metadata.name") for index in range(3)] == [
        "scheduler",
        "controller-manager",
        "etcd-0",
    ]
    assert answer.at("items.0.conditions") == [{"type": "Healthy", "status": "False", "message": REFUSED}]
    assert ("warning", '299 - "v1 ComponentStatus is deprecated in v1.19+"') in answer.headers


def test_built_in_controllers_are_healthy() -> None:
    client = Client()
    Bridge(client.backend, seed=1, options=BridgeOptions(controllers=True, kubelet=False))

    assert client.get(f"{BASE}/controller-manager").at("conditions.0.message") == "ok"


def test_a_component_has_cells() -> None:
    answer = Client().call("GET", f"{BASE}/etcd-0", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert answer.at("rows.0.cells") == ["etcd-0", "Healthy", "ok", ""]


@pytest.mark.parametrize(
    ("method", "path", "want"),
    [
        pytest.param("GET", f"{BASE}/nope", (404, 'componentstatus "nope" not found'), id="an unknown component"),
        pytest.param(
            "GET", f"{BASE}?watch=true", (405, 'watch is not supported on resources of kind "componentstatuses"'),
            id="a watch",
        ),
        pytest.param(
            "GET", "/api/v1/watch/componentstatuses", (404, "the server could not find the requested resource"),
            id="a watch by its path",
        ),
        pytest.param(
            "DELETE", f"{BASE}/etcd-0", (405, "the server does not allow this method on the requested resource"),
            id="a write",
        ),
    ],
)  # fmt: skip
def test_components_can_only_be_read(method: str, path: str, want: tuple[int, str]) -> None:
    answer = Client().call(method, path)
    assert (answer.status, answer.at("message")) == want


def test_selectors_apply_and_the_limit_does_not() -> None:
    client = Client()
    named = client.get(f"{BASE}?fieldSelector=metadata.name%3Detcd-0")
    assert (named.at("items.0.metadata.name"), named.at("items.1")) == ("etcd-0", None)
    assert client.get(f"{BASE}?labelSelector=a%3Db").at("items") == []
    assert client.get(f"{BASE}?limit=1").at("items.2") is not None
