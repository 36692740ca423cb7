"""The parts of OpenAPI v3 that the schemas of custom resources may use."""

from __future__ import annotations

import time

from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.validation.schemas import check_schema
from bayplan.base.plain_data import Document

_RULE: Document = {"rule": "true", "fieldPath": ".nope"}


def _path_errors(schema: Document) -> list[str]:
    """Return the fields of the errors about paths of rules."""
    found: list[Cause] = []
    check_schema(schema, "p", found, has_status=False)
    return [each.field for each in found if "must be a valid path" in each.message]


def test_paths_of_rules_are_checked_in_the_schemas_that_can_be_converted() -> None:
    spec: Document = {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-validations": [_RULE]}
    other: Document = {**spec, "id": "x"}
    schema: Document = {
        "type": "object",
        "properties": {"other": other, "spec": spec},
        "x-kubernetes-validations": [_RULE],
    }

    assert _path_errors(schema) == ["p.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].fieldPath"]


def test_invalid_paths_of_many_rules_are_found_in_linear_time() -> None:
    count = 2_000
    properties = {f"p{index}": {"type": "string"} for index in range(count)}
    schema: Document = {"type": "object", "properties": properties, "x-kubernetes-validations": [_RULE] * count}

    start = time.process_time()
    assert len(_path_errors(schema)) == count
    assert time.process_time() - start < 4
