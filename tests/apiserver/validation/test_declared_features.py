"""Declared features of nodes, compared with messages of a real kube-apiserver."""

from __future__ import annotations

import pytest

from tests.apiserver.client import MERGE, Client

_WRONG = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


@pytest.mark.parametrize(
    ("features", "want"),
    [
        pytest.param(["Abc", "Abc/def", "Abd/Def/g1"], [], id="valid names"),
        pytest.param(["A" * 253], [], id="the longest name"),
        pytest.param(
            ["abc"], [f'Invalid value: "abc": invalid feature name "abc": {_WRONG}'], id="a lower case letter"
        ),
        pytest.param(["A/"], [f'Invalid value: "A/": invalid feature name "A/": {_WRONG}'], id="an empty segment"),
        pytest.param(["Abc", "Abc"], ['Duplicate value: "Abc"'], id="a name twice"),
        pytest.param(["B", "A"], ['Invalid value: "A": list must be sorted alphabetically'], id="another order"),
        pytest.param(
            ["A" * 254],
            [f'Invalid value: "{"A" * 254}": invalid feature name "{"A" * 254}": must be no more than 253 characters'],
            id="a long name",
        ),
    ],
)
def test_declared_features_are_checked(features: list[str], want: list[str]) -> None:
    client = Client()
    answer = client.post("/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"declaredFeatures": features}})
    causes = [answer.at(f"details.causes.{index}.message") for index in range(len(want))]
    assert (answer.status, causes) == (422 if want else 201, want)

    client.post("/api/v1/nodes", {"metadata": {"name": "other"}})
    body = {"status": {"declaredFeatures": features}}
    assert client.patch("/api/v1/nodes/other/status", body, MERGE).status == (422 if want else 200)
