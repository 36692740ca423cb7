"""The JSON schema of scenario files agrees with the structs, and accepts the files in the documentation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from bayplan.scenarios.json_schema import scenario_schema, schema_text
from tests.project.tree import ROOT

FENCED = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def test_the_committed_schema_is_current() -> None:
    committed = (ROOT / "docs" / "scenario.schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(), "run make scenario-schema"


def documented(page: str) -> list[Any]:
    texts = FENCED.findall(Path(ROOT / "docs" / page).read_text(encoding="utf-8"))
    found = [yaml.safe_load(text) for text in texts if "kind: Scenario" in text]
    assert found
    return found


@pytest.mark.parametrize("page", ["scenarios.md", "tutorial-ci.md"])
def test_documented_scenarios_are_valid(page: str) -> None:
    for scenario in documented(page):
        jsonschema_rs.validate(scenario_schema(), scenario)


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("two actions", {"cordon": "n1", "wait": "1m"}),
    ("two checks in one", {"assert": [{"placed": {}, "waiting": {}}]}),
    ("an unknown field", {"drian": "n1"}),
    ("a time and a delay", {"at": "1m", "after": "1m"}),
]


@pytest.mark.parametrize("step", [pytest.param(case[1], id=case[0]) for case in WRONG])
def test_the_schema_rejects_invalid_steps(step: dict[str, Any]) -> None:
    scenario = {"apiVersion": "bayplan.io/v1alpha1", "kind": "Scenario", "steps": [step]}
    assert not jsonschema_rs.is_valid(scenario_schema(), scenario)
