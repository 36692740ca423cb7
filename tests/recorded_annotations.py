"""Result annotations as a running kube-scheduler-simulator wrote them, with node names in the style of a cloud."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1] / "conformance/annotations/scenarios.jsonl.gz"
Json = dict[str, Any]


@cache
def scenarios() -> dict[str, Json]:
    """Return the recorded scenarios by id."""
    with gzip.open(RECORDED, "rt") as lines:
        return {scenario["id"]: scenario for scenario in map(json.loads, lines)}


def cloud_name(node: str) -> str:
    """Return a cloud's name for a node of a scenario, whose name must be a letter and a digit."""
    return f"ip-10-{ord(node[0])}-{int(node[1:]) + 11}-188.eu-west-1.compute.internal"


def with_cloud_names(document: Any, nodes: list[str]) -> Any:
    """Return a document in which nodes are renamed to cloud names, also within JSON in its strings."""
    text = json.dumps(document)
    for node in nodes:
        text = re.sub(rf'(\\*"){re.escape(node)}(\\*")', rf"\g<1>{cloud_name(node)}\g<2>", text)
    return json.loads(text)


def with_cloud_nodes(name: str) -> Json:
    """Return a recorded scenario whose nodes have cloud names."""
    scenario = scenarios()[name]
    nodes = [item["metadata"]["name"] for item in scenario["objects"] if item["kind"] == "Node"]
    found: Json = with_cloud_names(scenario, nodes)
    return found
