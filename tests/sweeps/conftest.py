"""The cluster and the sweep of these tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bayplan.sweeps.plan import SweepPlan, read_plan

CLUSTER = """\
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
---
apiVersion: v1
kind: Pod
metadata: {name: small-1, annotations: {bayplan.io/run-time: 1h}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 2Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: small-2, annotations: {bayplan.io/run-time: 1h}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 2Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: large, annotations: {bayplan.io/run-time: 10m}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "4"}}}]}
"""
STRATEGY = "args.NodeResourcesFit.scoringStrategy.type"
PACKED, SPREAD = "MostAllocated", "LeastAllocated"
SWEEP = f"""\
paths: [cluster.yaml]
parameters:
  {STRATEGY}: [{SPREAD}, {PACKED}]
  weight.NodeResourcesFit: [1, 100]
seeds: [1, 2]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return tmp_path


@pytest.fixture
def plan(folder: Path) -> SweepPlan:
    return read_plan(folder / "sweep.yaml")


def rows(folder: Path) -> list[dict[str, Any]]:
    table = pq.read_table(folder / "trials.parquet").drop_columns(["seconds"])
    found: list[dict[str, Any]] = table.to_pylist()
    return found
