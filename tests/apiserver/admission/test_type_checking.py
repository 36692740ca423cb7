"""Type checks of ValidatingAdmissionPolicies: what the status of a policy says about its expressions."""

from __future__ import annotations

import pytest

from bayplan.apiserver.admission.type_checking import expression_warnings
from bayplan.apiserver.model.resources import ResourceRegistry
from bayplan.base.plain_data import Document

APPS: Document = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}
CORE: Document = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}


def warnings(expression: str, *rules: Document, **spec: object) -> list[str]:
    policy: Document = {
        "spec": {
            "matchConstraints": {"resourceRules": list(rules or (APPS,))},
            "validations": [{"expression": expression}],
            **spec,
        }
    }
    return [str(each["warning"]) for each in expression_warnings(policy, ResourceRegistry())]


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("object.spec.replicas < 5", id="an existing field"),
        pytest.param("object.metadata.labels['a'] == 'b'", id="metadata"),
        pytest.param("object.spec.template.spec.containers.all(c, c.image != '')", id="a list"),
        pytest.param("object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')", id="a time"),
        pytest.param("request.userInfo.username != '' && namespaceObject.metadata.name != ''", id="the request"),
        pytest.param("object.spec.strategy.rollingUpdate.maxSurge == 1", id="a number or a percentage"),
    ],
)
def test_valid_expressions_return_no_warning(expression: str) -> None:
    assert warnings(expression) == []


def test_an_unknown_field_is_reported_with_kind_and_position() -> None:
    assert warnings("object.spec.replcas < 5") == [
        "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replcas'\n"
        " | object.spec.replcas < 5\n | ...........^\n"
    ]


def test_a_type_mismatch_is_reported() -> None:
    (found,) = warnings("object.spec.replicas == 'a'")
    assert "found no matching overload for '_==_' applied to '(int, string)'" in found


def test_every_matched_kind_is_type_checked() -> None:
    (found,) = warnings("object.spec.replicas < 5", APPS, CORE)
    assert found.startswith("/v1, Kind=Pod: ERROR")
    assert "Deployment" not in found


def test_rules_with_wildcards_are_not_type_checked() -> None:
    assert warnings("object.nope", {**APPS, "apiGroups": ["*"]}) == []


def test_variables_have_the_type_of_their_expression() -> None:
    variables = [{"name": "count", "expression": "object.spec.replicas"}]
    assert warnings("variables.count < 5", variables=variables) == []
    assert "int, string" in warnings("variables.count == 'a'", variables=variables)[0]
