"""The JSON schema of scenario files, for editors. Run ``python -m bayplan.scenarios.json_schema FILE`` to write it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from bayplan.scenarios.scenario import ACTIONS, Scenario


def scenario_schema() -> dict[str, Any]:
    """Return the schema generated from the structs, with rules for fields that exclude each other."""
    (schema,), parts = msgspec.json.schema_components([Scenario], ref_template="#/$defs/{name}")
    parts["Check"] |= {"minProperties": 1, "maxProperties": 1}
    parts["Failure"] |= {"minProperties": 1, "maxProperties": 1}
    others = [{"not": {"required": [name, other]}} for name in ACTIONS for other in ACTIONS if name < other]
    parts["Step"]["allOf"] = [*others, {"not": {"required": ["at", "after"]}}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of bayplan test",
        **schema,
        "$defs": parts,
    }


def schema_text() -> str:
    """Return the schema as text. Equal structs yield equal bytes."""
    return json.dumps(scenario_schema(), indent=2) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
