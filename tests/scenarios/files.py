"""Scenario files for tests: three nodes in two zones, a Deployment, and further parts as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from bayplan.app.scenario_runs import ScenarioOptions, run_scenarios
from bayplan.scenarios.runner import ScenarioResult

NODES = "".join(
    f"""
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: {zone}, pool: {pool}, topology.kubernetes.io/rack: {rack}}}}}
status: {{allocatable: {{cpu: "4", memory: 16Gi, pods: "110"}}}}
---"""
    for name, zone, pool, rack in (("n1", "a", "blue", "r1"), ("n2", "a", "blue", "r2"), ("n3", "b", "green", "r3"))
)

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, resources: {requests: {cpu: "1"}}}]
"""

HEAD = """
apiVersion: bayplan.io/v1alpha1
kind: Scenario
name: test
cluster: [nodes.yaml, web.yaml]
steps:
"""


def write(folder: Path, steps: str, *, head: str = HEAD, files: Mapping[str, str] | None = None) -> Path:
    """Write a scenario, its nodes, its Deployment, and further YAML files by stem; return the path of the scenario."""
    (folder / "nodes.yaml").write_text(NODES, encoding="utf-8")
    (folder / "web.yaml").write_text(WEB, encoding="utf-8")
    for name, text in (files or {}).items():
        (folder / f"{name}.yaml").write_text(dedent(text), encoding="utf-8")
    path = folder / "scenario.yaml"
    path.write_text(head.lstrip() + dedent(steps).strip() + "\n", encoding="utf-8")
    return path


def run(folder: Path, steps: str, *, seed: int | None = None, files: Mapping[str, str] | None = None) -> ScenarioResult:
    """Run a scenario, check invariants after every event, and return its result."""
    path = write(folder, steps, files=files)
    (result,) = run_scenarios(ScenarioOptions(paths=[str(path)], seed=seed, check=True))
    return result
