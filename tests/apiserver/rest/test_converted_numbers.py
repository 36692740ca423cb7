"""Numbers in strategic patches and applied objects, which upstream decodes as Go maps first."""

from __future__ import annotations

import pytest

from tests.apiserver.client import APPLY, STRATEGIC, Client, Document

_SERVICES = "/api/v1/namespaces/default/services"


def _service(port: object) -> Document:
    return {"spec": {"ports": [{"port": 80, "targetPort": port}]}}


@pytest.mark.parametrize(
    ("port", "want"),
    [
        pytest.param(90.0, "", id="a whole float"),
        pytest.param(1.5, "json: cannot unmarshal number 1.5 into Go value of type int32", id="a fraction"),
        pytest.param(
            2**32, "json: cannot unmarshal number 4294967296 into Go value of type int32", id="a large number"
        ),
    ],
)
def test_ports_of_strategic_patches_are_read_from_their_whole_number(port: object, want: str) -> None:
    client = Client()
    assert client.post(_SERVICES, {"metadata": {"name": "s"}, **_service(80)}).status == 201
    answer = client.patch(f"{_SERVICES}/s", _service(port), STRATEGIC)
    if want:
        assert (answer.status, str(answer.at("message")).endswith(want)) == (422, True)
    else:
        assert answer.at("spec.ports.0.targetPort") == port


def test_the_first_number_that_does_not_fit_an_applied_object_is_reported() -> None:
    client = Client()
    spec: Document = {
        "minReadySeconds": 1.5,
        "strategy": {"rollingUpdate": {"maxSurge": 1.5}},
        "selector": {"matchLabels": {}},
    }
    body: Document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    answer = client.patch("/apis/apps/v1/namespaces/default/deployments/d?fieldManager=me", body, APPLY)
    # The strategy precedes the seconds in the Go struct.
    assert str(answer.at("message")).endswith("json: cannot unmarshal number 1.5 into Go value of type int32")

    body["spec"] = {**spec, "replicas": 1.5}
    answer = client.patch("/apis/apps/v1/namespaces/default/deployments/d?fieldManager=me", body, APPLY)
    assert str(answer.at("message")).endswith("cannot convert float64 to int32")
