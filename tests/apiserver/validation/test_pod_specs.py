"""Rules about the specs of pods that relate several fields (compared with kube-apiserver v1.36.3)."""

from __future__ import annotations

import pytest

from tests.apiserver.client import Client


@pytest.mark.parametrize(
    ("requests", "of_container", "want"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "2"}, "aggregate container requests of 2", id="containers request more"),
        pytest.param({"memory": "1Mi"}, {"memory": "2Mi"}, "aggregate container requests of 2Mi", id="in its format"),
        pytest.param(
            {"cpu": "-1"}, {}, "aggregate container requests of 0", id="negative, and no container requests it"
        ),
    ],
)
def test_a_pod_requests_at_least_what_its_containers_request(
    requests: dict[str, str], of_container: dict[str, str], want: str
) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": of_container}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "resources": {"requests": requests}}}
    answer = Client().call("POST", "/api/v1/namespaces/default/pods", pod)
    assert answer.status == 422
    assert f"must be greater than or equal to {want}" in str(answer.at("message"))
