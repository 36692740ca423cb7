"""Access reviews: selectors that an authorizer can't use."""

from __future__ import annotations

import pytest

from tests.apiserver.client import Client, Document

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def _requirement(operator: str, *values: str) -> Document:
    return {"key": "a", "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("selectors", "want"),
    [
        pytest.param({"labelSelector": {"rawSelector": "a in (b)"}}, None, id="readable labels"),
        pytest.param(
            {"labelSelector": {"rawSelector": "a in ("}},
            "spec.resourceAttributes.labelSelector ignored due to parse error",
            id="unreadable labels",
        ),
        pytest.param(
            {"labelSelector": {"requirements": [_requirement("New"), _requirement("In", "b")]}},
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
            id="an unknown operator",
        ),
        pytest.param(
            {"fieldSelector": {"rawSelector": "a"}, "labelSelector": {"rawSelector": "!"}},
            "spec.resourceAttributes.fieldSelector ignored due to parse error; "
            "spec.resourceAttributes.labelSelector ignored due to parse error",
            id="both are unreadable",
        ),
        pytest.param(
            {"fieldSelector": {"requirements": [_requirement("In", "b"), _requirement("Exists")]}},
            "spec.resourceAttributes.fieldSelector partially ignored due to parse error",
            id="fields have no Exists",
        ),
    ],
)
def test_selectors_that_an_authorizer_cannot_use_are_reported(selectors: Document, want: str | None) -> None:
    attributes = {"verb": "list", "resource": "pods", **selectors}
    answer = Client().call("POST", _REVIEWS, {"spec": {"resourceAttributes": attributes}})
    assert (answer.status, answer.at("status.evaluationError")) == (201, want)
